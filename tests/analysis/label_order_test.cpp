// The order of labels against a plain list, where moves crowd together more than labels have bits.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "analysis/order_maintenance.hpp"
#include "support/catch.hpp"

using fuse::analysis::MaintainedOrder;

namespace {

using Element = MaintainedOrder::Element;
constexpr Element size = 200;

/// The order and the list that it has to agree with.
struct Both {
  MaintainedOrder order{size};
  std::vector<Element> list;

  Both() {
    for (Element i = 0; i < size; ++i) list.push_back(i);
  }
  auto at(Element element) { return std::find(list.begin(), list.end(), element); }
  void move_after(Element element, Element position) {
    order.move_after(element, position);
    list.erase(at(element));
    list.insert(at(position) + 1, element);
  }
  void move_before(Element element, Element position) {
    order.move_before(element, position);
    list.erase(at(element));
    list.insert(at(position), element);
  }
  bool agree() const {
    return std::is_sorted(list.begin(), list.end(),
                          [&](Element a, Element b) { return order.before(a, b); }) &&
           std::adjacent_find(list.begin(), list.end(),
                              [&](Element a, Element b) { return !order.before(a, b); }) == list.end();
  }
};

}  // namespace

TEST_CASE("labels: elements crowd before the first one, behind the last one, and at one position",
          "[analysis]") {
  for (const int where : {0, 1, 2}) {
    Both both;
    for (Element i = 0; i < 4 * size; ++i) {
      const Element element = both.list[(i * 7 + 50) % size];
      const Element position = where == 0 ? both.list.front() : where == 1 ? both.list.back() : both.list[3];
      if (element == position) continue;
      if (where == 0) both.move_before(element, position);
      if (where == 1) both.move_after(element, position);
      if (where == 2) both.move_after(element, position);
      INFO("where " << where << ", move " << i);
      REQUIRE(both.agree());
    }
  }
}

TEST_CASE("labels: random moves and replacements", "[analysis]") {
  constexpr unsigned seed = 20261125;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  Both both;
  for (int i = 0; i < 3000; ++i) {
    const Element a = both.list[random() % both.list.size()], b = both.list[random() % both.list.size()];
    if (a == b) continue;
    if (random() % 2 == 0) {
      both.move_after(a, b);
    } else {
      both.move_before(a, b);
    }
    if (i % 100 == 0) {
      const Element gone = both.list[random() % both.list.size()],
                    stays = both.list[random() % both.list.size()];
      if (gone != stays) {
        both.order.replace(gone, stays);
        both.list.erase(both.at(stays));
        *both.at(gone) = stays;
      }
    }
  }
  CHECK(both.list.size() < size);
  CHECK(both.agree());
}

TEST_CASE("labels: a move to one position spreads eleven of 10,000 on average", "[analysis]") {
  // How many labels a move spreads is what makes long lists cheap, and is the same on every machine.
  MaintainedOrder order(10000);
  for (Element i = 1; i < 10000; ++i) order.move_after(i, 0);
  CHECK(order.relabelled() == 114237);
  MaintainedOrder behind(10000);
  for (Element i = 9999; i-- > 0;) behind.move_before(i, 9999);
  CHECK(behind.relabelled() == 106337);
}
