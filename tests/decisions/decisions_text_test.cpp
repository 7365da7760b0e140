// What is said of a file of decisions that a person mistyped: the line, the key, and what would be right.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compile/pipeline/plan_options.hpp"
#include "decisions/decisions_support.hpp"

namespace fuse::test {
namespace {

const std::string right_nest = "nest = r:grid c:serial c:warp8 c:lane32";

Graph one_softmax() {
  Graph g("one");
  g.output("y", softmax(g.input("x", f32, {64, 1000})));
  return g;
}

/// Of a kernel's line 3 with these choices.
std::string refused_kernel(const std::string& choices) {
  return refusal(one_softmax(), no_decisions() + "kernel 0123456789abcdef " + choices + "\n");
}

/// Of a target in line 2.
std::string refused_target(const std::string& target) {
  return refusal(one_softmax(), "fuse decisions 4\n" + target + "\n");
}

std::string with_field(const std::string& from, const std::string& to) {
  std::string text = "target {" + schedule::target_text(h200_target()) + "}";
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::string at_3 = "parse: decisions: line 3: ", at_2 = "parse: decisions: line 2: ";

TEST_CASE("a key that stands twice is shown with both of its values", "[schedule][decisions]") {
  CHECK(refused_kernel("{" + right_nest + ", register_cache = 8, register_cache = 16}") ==
        at_3 +
            "the key 'register_cache' stands there twice\n  hint: keep 'register_cache = 8' or "
            "'register_cache = 16'");
  CHECK(refused_kernel("{" + right_nest + ", packed, packed}") ==
        at_3 + "the key 'packed' stands there twice\n  hint: write 'packed' once");
  CHECK(refused_kernel("{blocks = 1, phase {" + right_nest + "}, blocks = 2, phase {" + right_nest + "}}") ==
        at_3 + "the key 'blocks' stands there twice\n  hint: keep 'blocks = 1' or 'blocks = 2'");
  CHECK(refusal(one_softmax(), no_decisions() + "options {layers = 1, layers = 2}\n") ==
        at_3 + "the key 'layers' stands there twice\n  hint: keep 'layers = 1' or 'layers = 2'");
  CHECK(refused_target(with_field("sms = 132", "sms = 132, sms = 66")) ==
        at_2 + "the key 'sms' stands there twice\n  hint: keep 'sms = 132' or 'sms = 66'");
}

TEST_CASE("blanks around the words of an entry do not matter", "[schedule][decisions]") {
  const std::vector<std::string> entries = {"target {" + schedule::target_text(h200_target()) + "}",
                                            "options {layers = 1}",
                                            "stitch 0123456789abcdef yes",
                                            "stitch 0123456789abcdee 1 no",
                                            "kernel 0123456789abcdef {" + right_nest + "}",
                                            "kernel 0123456789abcdee 2 {" + right_nest + "}",
                                            "gemm 0123456789abcdef {algorithm = 3}",
                                            "gemm 0123456789abcdee 1 {algorithm = 2}"};
  const auto read = [&](const std::string& blank, const std::string& end) {
    std::string text = "fuse decisions 4" + end;
    for (const std::string& entry : entries) {
      text += blank;
      bool inside = false;
      for (const char c : entry) {
        inside = inside || c == '{';
        text += c == ' ' && !inside ? blank : std::string(1, c);
      }
      text += blank + end + blank + "# a note" + end + blank + end;
    }
    return print(schedule::parse_decisions(text));
  };
  const std::string plain = read(" ", "\n");
  for (const std::string& entry : entries) CHECK(plain.find(entry + '\n') != std::string::npos);
  for (const std::string blank : {" ", "  ", "\t", " \t ", "\t\t"}) {
    for (const std::string end : {"\n", "\r\n"}) CHECK(read(blank, end) == plain);
  }
}

TEST_CASE("text behind the closing brace is shown", "[schedule][decisions]") {
  const std::string hint = "\n  hint: the brace ends the entry; a comment has a line of its own";
  CHECK(refused_kernel("{" + right_nest + "} # fast") ==
        at_3 + "'# fast' stands after the closing brace" + hint);
  CHECK(refused_kernel("{" + right_nest + "}}") == at_3 + "'}' stands after the closing brace" + hint);
  CHECK(refused_kernel("{" + right_nest + "} {register_cache = 3}") ==
        at_3 + "'{register_cache = 3}' stands after the closing brace" + hint);
  CHECK(refused_kernel("{" + right_nest) == at_3 + "the brace of '{" + right_nest.substr(0, 39) +
                                                "' is not closed\n  hint: the file may have been cut off");
  CHECK(refused_kernel("nest").starts_with(at_3 +
                                           "'nest' does not stand in braces\n  hint: what an entry says"));
}

TEST_CASE("each value of each option is read, and changes no other option", "[schedule][decisions]") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> all = {
      {"rules", {"fuse", "apollo"}},
      {"layers", {"1", "2", "3"}},
      {"max_inputs", {"1", "7", "400"}},
      {"baseline", {"off", "xla", "tvm", "one_op"}},
      {"stitch", {"no", "yes"}},
      {"cooperative", {"never", "gain", "always"}},
      {"regional", {"no", "yes"}},
      {"horizontal", {"no", "yes"}},
      {"schemes", {"fuse", "astitch"}},
      {"merge_gemms", {"no", "yes"}},
      {"streams", {"1", "2", std::to_string(schedule::most_streams)}}};
  const auto text = [&](const std::vector<std::string>& values) {
    std::string result;
    for (std::size_t i = 0; i < all.size(); ++i)
      result += (i == 0 ? "" : ", ") + all[i].first + " = " + values[i];
    return result;
  };
  std::vector<std::string> values;
  for (const auto& option : all) values.push_back(option.second.front());
  PipelineOptions options;
  read_plan_options(text(values), "here", options);
  CHECK(plan_options_text(options) == text(values));
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::string& value : all[i].second) {
      values[i] = value;
      read_plan_options(all[i].first + " = " + value, "here", options);
      CHECK(plan_options_text(options) == text(values));
    }
  }
}

TEST_CASE("a target's keys and numbers are read, whatever their order", "[schedule][decisions]") {
  CHECK(refused_target(with_field("sms =", "smz =")) ==
        at_2 + "no target has the key 'smz'\n  hint: did you mean 'sms'?");
  CHECK(refused_target(with_field("sms = 132", "sms =")) ==
        at_2 + "sms is ''\n  hint: sms takes a number, as in sms = 64");
  CHECK(refused_target(with_field("sms = 132", "sms")).starts_with(at_2 + "sms is ''"));
  CHECK(refused_target(with_field("sms = 132", "sms = many")).starts_with(at_2 + "sms is 'many'"));
  CHECK(refused_target(with_field("sms = 132, ", "")) ==
        at_2 + "the target lacks the key 'sms'\n  hint: fusec plan --decisions writes all of them");
  CHECK(refused_target("target {}").starts_with(at_2 + "the target lacks the key 'arch'"));
  CHECK(refused_target(with_field("sms = 132, ", "").insert(8, "sms=132,")) == "no error");
  CHECK(refused_target(with_field("sms = 132", "sms = 66"))
            .find("for another device: it has {sms = 66}, and h200 has {sms = 132}") != std::string::npos);
  CHECK(refusal(one_softmax(), no_decisions() + "target {}\n") ==
        at_3 + "there is a target already\n  hint: a file is for one GPU");
}

TEST_CASE("an entry that stands twice names the first one's line", "[schedule][decisions]") {
  const Graph g = one_softmax();
  const std::string text = decisions_text(compiled_with(g, ""));
  const auto line_of = [&](const std::string& word) {
    const std::size_t at = text.find('\n' + word + ' ') + 1;
    return std::pair(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                     text.substr(at, text.find('\n', at) - at));
  };
  for (const std::string word : {"kernel", "stitch", "options"}) {
    const auto [number, line] = line_of(word);
    const std::string twice = refusal(g, text + line + '\n');
    INFO(twice);
    CHECK(twice.find("line " + std::to_string(std::count(text.begin(), text.end(), '\n') + 1)) !=
          std::string::npos);
    CHECK(twice.substr(twice.find("hint: ")).find("line " + std::to_string(number)) != std::string::npos);
  }
}

TEST_CASE("of a nest the word that is no split is named", "[schedule][decisions]") {
  const auto refused = [](const std::string& nest) { return refused_kernel("{nest = " + nest + "}"); };
  CHECK(refused("r:grid r:warp0") ==
        at_3 +
            "nest is 'r:grid r:warp0': 'r:warp0' has no number of units that a split can have\n"
            "  hint: a number of units is from 1 to 1048576, as in r:warp2");
  const std::string longer = refused(std::string(5000, 'x'));
  CHECK(longer.starts_with(at_3 + "nest is 'xxx"));
  CHECK(longer.size() < 1000);
  CHECK(refused("r:grid c:lane3x").starts_with(at_3 + "nest is 'r:grid c:lane3x': 'c:lane3x' has no number"));
  CHECK(refused("r:gird c:lane32") ==
        at_3 + "nest is 'r:gird c:lane32': there is no level 'gird'\n  hint: did you mean 'grid'?");
  CHECK(refused("r:grid clane32") ==
        at_3 +
            "nest is 'r:grid clane32': 'clane32' is no dim and its level\n  hint: a nest is a list of "
            "splits, a "
            "dim and a level each: nest = r:grid r:warp8 c:serial c:lane32 c:vector4");
}

}  // namespace
}  // namespace fuse::test
