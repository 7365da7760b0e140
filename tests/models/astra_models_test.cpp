// The models of Astra's paper against plain loops in double precision, one sequence at a time.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "../../examples/models/gnmt.hpp"
#include "../../examples/models/mi_lstm.hpp"
#include "../../examples/models/scrn.hpp"
#include "../../examples/models/sub_lstm.hpp"
#include "models/reference_runs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

template <class Model>
Model in_f64(Model model) {
  model.dtype = f64;
  return model;
}

/// The probabilities of every step of one sequence of a batch.
using PlainModel = std::function<std::vector<Row>(const PlainValues& values, std::int64_t sequence)>;

/// f64 sums of at most 20 terms, in another order: 1e-13 is the most that is to be expected.
void check_forward(const Graph& graph, std::int64_t batch, const PlainModel& plain) {
  ReferenceRun run(graph);
  run.run();
  const Row y = run.output("y");
  const PlainValues values(run.values);
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    const std::vector<Row> wanted = plain(values, sequence);
    REQUIRE(y.size() == wanted.size() * static_cast<std::size_t>(batch) * wanted.front().size());
    for (std::size_t t = 0; t < wanted.size(); ++t) {
      for (std::size_t i = 0; i < wanted[t].size(); ++i) {
        const double got =
            y[(t * static_cast<std::size_t>(batch) + static_cast<std::size_t>(sequence)) * wanted[t].size() +
              i];
        INFO(graph.name() << ", sequence " << sequence << ", step " << t << ", word " << i << ": " << got
                          << ", not " << wanted[t][i]);
        CHECK(std::abs(got - wanted[t][i]) <= 1e-12);
      }
    }
  }
}

/// The embedding of step t.
Row word(const PlainValues& values, const std::string& tokens, const std::string& table, std::int64_t batch,
         std::int64_t t, std::int64_t sequence) {
  return values.row(table, values.number(tokens, t * batch + sequence));
}

/// W x + R h + b
Row plain_gate(const PlainValues& values, const std::string& name, const Row& x, const Row& h) {
  const Row sum = plain_sum(values.times(x, "W." + name), values.times(h, "R." + name));
  return plain_sum(sum, values.row("b." + name));
}

void plain_lstm(const PlainValues& values, const std::string& name, const Row& x, Row& h, Row& c) {
  const Row i = plain_sigmoid(plain_gate(values, "i." + name, x, h));
  const Row f = plain_sigmoid(plain_gate(values, "f." + name, x, h));
  const Row o = plain_sigmoid(plain_gate(values, "o." + name, x, h));
  const Row z = plain_tanh(plain_gate(values, "z." + name, x, h));
  for (std::size_t k = 0; k < h.size(); ++k) {
    c[k] = f[k] * c[k] + i[k] * z[k];
    h[k] = o[k] * std::tanh(c[k]);
  }
}

void plain_sub_lstm(const PlainValues& values, const std::string& name, const Row& x, Row& h, Row& c) {
  const Row i = plain_sigmoid(plain_gate(values, "i." + name, x, h));
  const Row f = plain_sigmoid(plain_gate(values, "f." + name, x, h));
  const Row o = plain_sigmoid(plain_gate(values, "o." + name, x, h));
  const Row z = plain_sigmoid(plain_gate(values, "z." + name, x, h));
  for (std::size_t k = 0; k < h.size(); ++k) {
    c[k] = f[k] * c[k] + z[k] - i[k];
    h[k] = 1 / (1 + std::exp(-c[k])) - o[k];
  }
}

template <class Model, class Layer>
PlainModel plain_stack(const Model& model, const Layer& layer) {
  return [=](const PlainValues& values, std::int64_t sequence) {
    std::vector<Row> h, c, likely;
    for (std::int64_t l = 0; l < model.layers; ++l) {
      h.push_back(values.row(fmt::format("h.{}", l), sequence));
      c.push_back(values.row(fmt::format("c.{}", l), sequence));
    }
    for (std::int64_t t = 0; t < model.steps; ++t) {
      Row x = word(values, "tokens", "words", model.batch, t, sequence);
      for (std::size_t l = 0; l < h.size(); ++l) {
        layer(values, std::to_string(l), x, h[l], c[l]);
        x = h[l];
      }
      likely.push_back(plain_softmax(plain_sum(values.times(x, "V"), values.row("b"))));
    }
    return likely;
  };
}

/// A layer over all steps, from states of 0.
std::vector<Row> plain_layer(const PlainValues& values, const std::string& name, std::vector<Row> x,
                             std::size_t hidden, bool backward) {
  Row h(hidden), c(hidden);
  if (backward) std::reverse(x.begin(), x.end());
  for (Row& step : x) {
    plain_lstm(values, name, step, h, c);
    step = h;
  }
  if (backward) std::reverse(x.begin(), x.end());
  return x;
}

Row beside(Row a, const Row& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Row> plain_gnmt(const example::Gnmt& model, const PlainValues& values, std::int64_t sequence) {
  const auto hidden = static_cast<std::size_t>(model.hidden);
  std::vector<Row> x, likely;
  for (std::int64_t s = 0; s < model.source; ++s)
    x.push_back(word(values, "source", "source.words", model.batch, s, sequence));
  const std::vector<Row> to_right = plain_layer(values, "forward", x, hidden, false);
  const std::vector<Row> to_left = plain_layer(values, "backward", x, hidden, true);
  for (std::size_t s = 0; s < x.size(); ++s) x[s] = beside(to_right[s], to_left[s]);
  x = plain_layer(values, "encoder.1", x, hidden, false);
  const std::vector<Row> third = plain_layer(values, "encoder.2", x, hidden, false);
  for (std::size_t s = 0; s < x.size(); ++s) x[s] = plain_sum(third[s], x[s]);

  std::vector<Row> h(3, Row(hidden)), c = h;
  for (std::int64_t t = 0; t < model.target; ++t) {
    const Row asks = values.times(h[0], "Q");
    Row scores;
    for (const Row& m : x) {
      const Row known = plain_tanh(plain_sum(asks, values.times(m, "K")));
      double score = 0;
      for (std::size_t k = 0; k < hidden; ++k) score += known[k] * values.row("v")[k];
      scores.push_back(score);
    }
    const Row weights = plain_softmax(scores);
    Row context(hidden);
    for (std::size_t s = 0; s < x.size(); ++s) {
      for (std::size_t k = 0; k < hidden; ++k) context[k] += weights[s] * x[s][k];
    }
    Row y = word(values, "target", "target.words", model.batch, t, sequence);
    plain_lstm(values, "decoder.0", beside(y, context), h[0], c[0]);
    plain_lstm(values, "decoder.1", beside(h[0], context), h[1], c[1]);
    plain_lstm(values, "decoder.2", beside(h[1], context), h[2], c[2]);
    likely.push_back(plain_softmax(plain_sum(values.times(plain_sum(h[2], h[1]), "V"), values.row("b"))));
  }
  return likely;
}

}  // namespace

TEST_CASE("astra models: an SCRN is that of its equations", "[models]") {
  const example::Scrn model = in_f64(example::Scrn::small());
  check_forward(build_scrn(model), model.batch, [&](const PlainValues& values, std::int64_t sequence) {
    Row h = values.row("h", sequence), s = values.row("s", sequence);
    std::vector<Row> likely;
    for (std::int64_t t = 0; t < model.steps; ++t) {
      const Row x = word(values, "tokens", "words", model.batch, t, sequence);
      s = each([](double Bx, double before) { return 0.05 * Bx + 0.95 * before; }, values.times(x, "B"), s);
      const Row sum = plain_sum(values.times(s, "P"), values.times(x, "A"));
      h = plain_sigmoid(plain_sum(sum, values.times(h, "R")));
      likely.push_back(plain_softmax(plain_sum(values.times(h, "U"), values.times(s, "V"))));
    }
    return likely;
  });
}

TEST_CASE("astra models: an LSTM with multiplicative integration is that of its equations", "[models]") {
  const example::MiLstm model = in_f64(example::MiLstm::small());
  check_forward(build_mi_lstm(model), model.batch, [&](const PlainValues& values, std::int64_t sequence) {
    Row h = values.row("h", sequence), c = values.row("c", sequence);
    std::vector<Row> likely;
    for (std::int64_t t = 0; t < model.steps; ++t) {
      const Row x = word(values, "tokens", "words", model.batch, t, sequence);
      const auto gate = [&](const std::string& name) {
        const auto mixed = [](double Wx, double Uh, double al, double b1, double b2, double b) {
          return al * Wx * Uh + b1 * Uh + b2 * Wx + b;
        };
        return each(mixed, values.times(x, "W." + name), values.times(h, "U." + name),
                    values.row("al." + name), values.row("b1." + name), values.row("b2." + name),
                    values.row("b." + name));
      };
      const Row i = plain_sigmoid(gate("i")), f = plain_sigmoid(gate("f")), o = plain_sigmoid(gate("o"));
      const Row z = plain_tanh(gate("z"));
      for (std::size_t k = 0; k < h.size(); ++k) {
        c[k] = f[k] * c[k] + i[k] * z[k];
        h[k] = o[k] * std::tanh(c[k]);
      }
      likely.push_back(plain_softmax(plain_sum(values.times(h, "V"), values.row("b"))));
    }
    return likely;
  });
}

TEST_CASE("astra models: stacks of LSTMs and of subLSTMs are those of their equations", "[models]") {
  const example::StackedLstm lstm = in_f64(example::StackedLstm::small());
  check_forward(build_stacked_lstm(lstm), lstm.batch, plain_stack(lstm, plain_lstm));
  const example::SubLstm sub = in_f64(example::SubLstm::small());
  check_forward(build_sub_lstm(sub), sub.batch, plain_stack(sub, plain_sub_lstm));
}

TEST_CASE("astra models: GNMT is that of its equations", "[models]") {
  const example::Gnmt model = in_f64(example::Gnmt::small());
  check_forward(build_gnmt(model), model.batch, [&](const PlainValues& values, std::int64_t sequence) {
    return plain_gnmt(model, values, sequence);
  });
}

TEST_CASE("astra models: what is compiled is right", "[models][device]") {
  check_model(build_scrn(example::Scrn::small()));
  check_model(build_mi_lstm(example::MiLstm::small()));
  check_model(build_sub_lstm(example::SubLstm::small()));
  check_model(build_stacked_lstm(example::StackedLstm::small()));
  check_model(build_gnmt(example::Gnmt::small()));
}
