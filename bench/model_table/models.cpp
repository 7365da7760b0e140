// SPDX-License-Identifier: Apache-2.0
#include "model_table/models.hpp"

#include "models/asr.hpp"
#include "models/bert.hpp"
#include "models/crnn.hpp"
#include "models/dien.hpp"
#include "models/encoder_decoder.hpp"

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
  };
  return models;
}

}  // namespace fuse::bench
