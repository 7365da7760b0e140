// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/in_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace fuse::schedule {

using ir::NodeId;
using ir::Relation;

namespace {

bool is_update(const ir::Node& node) { return info(node.op).relation == Relation::update; }

}  // namespace

void UpdateChain::add_to(std::map<NodeId, NodeId>& in_place) const {
  NodeId before = donor;
  for (const NodeId update : updates) {
    in_place.emplace(update, before);
    before = update;
  }
}

NodeId InPlace::owner(NodeId id) const {
  for (auto found = of.find(id); found != of.end(); found = of.find(id)) id = found->second;
  return id;
}

UpdateFinder::UpdateFinder(const ir::Graph& graph, const std::vector<NodeId>& storage)
    : graph_(graph), storage_(storage) {}

std::vector<UpdateChain> UpdateFinder::chains(const ir::Decide& decide, std::vector<InPlaceChoice>& choices) {
  std::vector<UpdateChain> result;
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ir::Output& output = graph_.outputs[i];
    if (!output.donated()) continue;
    InPlaceChoice& choice = choices.emplace_back(InPlaceChoice{i});
    UpdateChain chain{i, output.donor};
    choice.refused = follow(chain, choice.is_update);
    if (!choice.taken()) continue;
    const auto value = [&] { return std::vector{output.node}; };
    if (!decided(decide, ir::Question::view, graph_, output.node, true, value)) {
      choice.refused = "decisions say so";
      continue;
    }
    result.push_back(std::move(chain));
  }
  return result;
}

std::string UpdateFinder::follow(UpdateChain& chain, bool& is_update_of_donor) {
  const auto name = [&](NodeId id) { return graph_.value_name(id); };
  NodeId value = storage_[graph_.outputs[chain.output].node];
  for (; is_update(graph_[value]); value = storage_[graph_[value].operands[0]])
    chain.updates.push_back(value);
  if (chain.updates.empty() || value != chain.donor) {
    return fmt::format("{} is no update of {}", name(storage_[graph_.outputs[chain.output].node]),
                       name(chain.donor));
  }
  is_update_of_donor = true;
  std::reverse(chain.updates.begin(), chain.updates.end());
  prepare();
  for (std::size_t i = 0; i < chain.updates.size(); ++i) {
    const NodeId update = chain.updates[i];
    const NodeId before = overwritten(chain, i);
    for (const ir::Output& output : graph_.outputs) {
      if (storage_[output.node] == before) return fmt::format("output '{}' is {}", output.name, name(before));
    }
    for (const NodeId reader : readers(before)) {
      if (reader == update) {
        if (reads_as_data(update, before)) return fmt::format("{} is written over itself", name(before));
      } else if (order_->reaches(update, reader)) {
        return fmt::format("{} reads {} and depends on {}, which overwrites it", name(reader), name(before),
                           name(update));
      }
    }
  }
  return {};
}

std::vector<NodeId> UpdateFinder::read_before(const UpdateChain& chain, const std::vector<bool>& stored) {
  std::vector<NodeId> result;
  for (std::size_t i = 0; i < chain.updates.size(); ++i) {
    const NodeId update = chain.updates[i];
    std::vector<NodeId> work = readers(overwritten(chain, i));
    std::unordered_set<NodeId> seen(work.begin(), work.end());
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (id == update || stored[storage_[id]]) continue;
      bool needed_after = false;
      for (const NodeId user : users_[id]) {
        if (user == update || order_->reaches(update, user)) {
          needed_after = true;
        } else if (seen.insert(user).second) {
          work.push_back(user);
        }
      }
      if (needed_after) result.push_back(storage_[id]);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

void UpdateFinder::prepare() {
  if (order_) return;
  order_.emplace(graph_);
  users_ = ir::users(graph_);
}

NodeId UpdateFinder::overwritten(const UpdateChain& chain, std::size_t update) {
  return update == 0 ? chain.donor : chain.updates[update - 1];
}

std::vector<NodeId> UpdateFinder::readers(NodeId value) const {
  std::vector<NodeId> result, work = {value};
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (const NodeId user : users_[id]) {
      (storage_[user] == value ? work : result).push_back(user);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool UpdateFinder::reads_as_data(NodeId update, NodeId value) const {
  const std::vector<NodeId>& operands = graph_[update].operands;
  return std::any_of(operands.begin() + 1, operands.end(), [&](NodeId id) { return storage_[id] == value; });
}

std::string print(const ir::Graph& graph, const InPlace& in_place) {
  std::string text;
  for (const InPlaceChoice& choice : in_place.choices) {
    const ir::Output& output = graph.outputs[choice.output];
    const std::string value = graph.value_name(output.node), donor = graph.value_name(output.donor);
    text += choice.taken() ? fmt::format("in place {} in {}\n", value, donor)
                           : fmt::format("copy {} into {} because {}\n", value, donor, choice.refused);
  }
  return text;
}

}  // namespace fuse::schedule
