// SPDX-License-Identifier: Apache-2.0
#include "model_table/models.hpp"

#include "models/asr.hpp"
#include "models/bert.hpp"
#include "models/crnn.hpp"
#include "models/dien.hpp"
#include "models/encoder_decoder.hpp"
#include "models/gnmt.hpp"
#include "models/mi_lstm.hpp"
#include "models/scrn.hpp"
#include "models/stacked_lstm.hpp"
#include "models/sub_lstm.hpp"

namespace fuse::bench {

const std::vector<TableModel>& table_models() {
  using namespace example;  // NOLINT
  const auto crnn = [] { return build_crnn(Crnn::paper()); };
  const auto asr = [] { return build_asr(Asr::paper()); };
  const auto transformer = [] { return build_transformer(Transformer::paper()); };
  const auto dien = [] { return build_dien(Dien::paper()); };
  // The GEMMs of 200 sequences would take a CPU minutes.
  const auto few_sequences = [] {
    Bert model = Bert::paper();
    model.layers = 2, model.batch = 2, model.vocabulary = 1000;
    return build_bert(model);
  };
  static const std::vector<TableModel> models = {
      {.name = "crnn",
       .paper = crnn,
       .small = [] { return build_crnn(Crnn::small()); },
       .counted = crnn,
       .counted_size = "as above",
       .astitch_xla = 986,
       .astitch = 297},
      {.name = "asr",
       .paper = asr,
       .small = [] { return build_asr(Asr::small()); },
       .counted = asr,
       .counted_size = "as above",
       .astitch_xla = 496,
       .astitch = 218},
      {.name = "bert",
       .paper = [] { return build_bert(Bert::paper()); },
       .small = [] { return build_bert(Bert::small()); },
       .counted = few_sequences,
       .counted_size = "2 layers, 2 sequences, 1000 words",
       .astitch_xla = 64,
       .astitch = 26},
      {.name = "bert_large", .paper = [] { return build_bert(Bert::large()); }},
      {.name = "transformer",
       .paper = transformer,
       .small = [] { return build_transformer(Transformer::small()); },
       .counted = transformer,
       .counted_size = "as above",
       .astitch_xla = 10132,
       .astitch = 2578},
      {.name = "dien",
       .paper = dien,
       .small = [] { return build_dien(Dien::small()); },
       .counted = dien,
       .counted_size = "as above",
       .astitch_xla = 2579,
       .astitch = 811},
      // Astra's, for which it prints no counts: forward, and forward with backward.
      {.name = "scrn",
       .paper = [] { return build_scrn(Scrn::paper()); },
       .small = [] { return build_scrn(Scrn::small()); },
       .held_to_bound = false},
      {.name = "scrn_training",
       .paper = [] { return build_scrn_training(Scrn::paper()); },
       .small = [] { return build_scrn_training(Scrn::small()); },
       .held_to_bound = false},
      {.name = "mi_lstm",
       .paper = [] { return build_mi_lstm(MiLstm::paper()); },
       .small = [] { return build_mi_lstm(MiLstm::small()); },
       .held_to_bound = false},
      {.name = "mi_lstm_training",
       .paper = [] { return build_mi_lstm_training(MiLstm::paper()); },
       .small = [] { return build_mi_lstm_training(MiLstm::small()); },
       .held_to_bound = false},
      {.name = "sub_lstm",
       .paper = [] { return build_sub_lstm(SubLstm::paper()); },
       .small = [] { return build_sub_lstm(SubLstm::small()); },
       .held_to_bound = false},
      {.name = "sub_lstm_training",
       .paper = [] { return build_sub_lstm_training(SubLstm::paper()); },
       .small = [] { return build_sub_lstm_training(SubLstm::small()); },
       .held_to_bound = false},
      {.name = "stacked_lstm",
       .paper = [] { return build_stacked_lstm(StackedLstm::paper()); },
       .small = [] { return build_stacked_lstm(StackedLstm::small()); },
       .held_to_bound = false},
      {.name = "stacked_lstm_training",
       .paper = [] { return build_stacked_lstm_training(StackedLstm::paper()); },
       .small = [] { return build_stacked_lstm_training(StackedLstm::small()); },
       .held_to_bound = false},
      {.name = "gnmt",
       .paper = [] { return build_gnmt(Gnmt::paper()); },
       .small = [] { return build_gnmt(Gnmt::small()); },
       .held_to_bound = false},
      {.name = "gnmt_training",
       .paper = [] { return build_gnmt_training(Gnmt::paper()); },
       .small = [] { return build_gnmt_training(Gnmt::small()); },
       .held_to_bound = false},
  };
  return models;
}

}  // namespace fuse::bench
