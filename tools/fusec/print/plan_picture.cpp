// SPDX-License-Identifier: Apache-2.0
#include "fusec/print/plan_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <variant>

#include "fusec/print/xml_text.hpp"

namespace fuse::fusec {
namespace {

// Positions, in pixels. The font is not known where the text is made, so widths of text are estimates that
// leave room.
constexpr double character = 6.8;
constexpr double margin = 16, title_height = 62;
constexpr double chip_height = 20, chip_gap = 4, chip_padding = 8;
constexpr double ops_width = 560, arrow_width = 44, step_width = 400, row_gap = 8, row_padding = 2;
constexpr double step_height = 40;

struct Paint {
  std::string_view fill, ink, meaning;
};
constexpr Paint arithmetic{"#dbeafe", "#1e3a8a", "element by element"};
constexpr Paint costly{"#bfdbfe", "#1e3a8a", "a costly function"};
constexpr Paint reduction{"#fed7aa", "#7c2d12", "a reduction or a scan"};
constexpr Paint movement{"#e5e7eb", "#374151", "moves elements"};
constexpr Paint contraction{"#e9d5ff", "#581c87", "a matrix product"};
constexpr Paint other{"#fde68a", "#713f12", "another op"};
constexpr Paint legend[] = {arithmetic, costly, reduction, movement, contraction, other};
constexpr std::string_view kernel_fill = "#1d4ed8", gemm_fill = "#7e22ce", copy_fill = "#4b5563";

Paint paint_of(ir::Op op) {
  const ir::OpInfo& row = ir::info(op);
  if (row.relation == ir::Relation::contraction) return contraction;
  if (row.relation == ir::Relation::reduce || row.relation == ir::Relation::scan) return reduction;
  if (row.has(ir::Trait::movement)) return movement;
  if (row.relation != ir::Relation::identity) return other;
  return row.has(ir::Trait::costly) ? costly : arithmetic;
}

std::string counted(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

class StepsPainter {
 public:
  explicit StepsPainter(const CompiledGraph& compiled)
      : compiled_(compiled), graph_(compiled.stages.graph), origins_(kernel_origins(compiled.stages)) {
    const std::vector<bool> constants = constant_nodes(graph_);
    for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) {
      shown_.push_back(!constants[id] && !ir::is_given(graph_[id]));
    }
  }

  std::string run() {
    const schedule::Plan& plan = compiled_.stages.plan;
    paint_legend();
    for (const schedule::Step& step : plan.setup) paint_step(step, true);
    for (const schedule::Step& step : plan.steps) paint_step(step, false);
    const double width = 2 * margin + ops_width + arrow_width + step_width, height = y_ + margin - row_gap;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
               "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
               width, height) +
           title() + body_ + "</svg>\n";
  }

 private:
  std::string title() const {
    std::string what = counted(kernels_, "kernel");
    if (gemms_ > 0) what += ", " + counted(gemms_, "GEMM call");
    if (copies_ > 0) what += ", " + counted(copies_, "copy step");
    if (memsets_ > 0) what += ", " + counted(memsets_, "memset");
    if (const std::size_t last = what.rfind(", "); last != std::string::npos) what.replace(last, 2, " and ");
    if (setup_ > 0) what += fmt::format("; {} for the parameters, once", counted(setup_, "step"));
    return text_at(margin, 26, fmt::format("{}: {} become {}", graph_.name, counted(ops_.size(), "op"), what),
                   "#111827", "font-size=\"16\" font-weight=\"bold\"");
  }

  void paint_legend() {
    double x = margin;
    for (const Paint& paint : legend) {
      body_ +=
          fmt::format(R"(<rect x="{:.1f}" y="38" width="12" height="12" rx="3" fill="{}"/>)", x, paint.fill) +
          '\n';
      body_ += text_at(x + 16, 48, paint.meaning, "#374151");
      x += 16 + character * static_cast<double>(paint.meaning.size()) + 14;
    }
  }

  void paint_step(const schedule::Step& step, bool setup) {
    const std::vector<std::vector<ir::NodeId>> lines = lines_of(step);
    const double chips = static_cast<double>(lines.size()) * (chip_height + chip_gap) - chip_gap;
    const double height = std::max(chips, step_height) + 2 * row_padding, middle = y_ + height / 2;
    double y = middle - chips / 2;
    for (const std::vector<ir::NodeId>& line : lines) {
      double x = margin;
      for (const ir::NodeId id : line) {
        paint_chip(x, y, id);
        x += chip_width(id) + chip_gap;
      }
      y += chip_height + chip_gap;
    }
    paint_arrow(middle);
    paint_box(step, setup, middle);
    y_ += height + row_gap;
  }

  std::vector<std::vector<ir::NodeId>> lines_of(const schedule::Step& step) {
    std::vector<std::vector<ir::NodeId>> lines;
    double x = 0;
    for (const ir::NodeId id : step.nodes) {
      if (!shown_[id]) continue;
      ops_.insert(id);
      if (lines.empty() || x + chip_width(id) > ops_width) {
        lines.emplace_back();
        x = 0;
      }
      lines.back().push_back(id);
      x += chip_width(id) + chip_gap;
    }
    return lines;
  }

  double chip_width(ir::NodeId id) const {
    return character * static_cast<double>(ir::to_string(graph_[id].op).size()) + 2 * chip_padding;
  }

  void paint_chip(double x, double y, ir::NodeId id) {
    const ir::Node& node = graph_[id];
    const double width = chip_width(id);
    const Paint paint = paint_of(node.op);
    const std::string scope = graph_.scope_path(node.scope);
    body_ += fmt::format(
        "<g><title>{}{} {}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" "
        "rx=\"4\" "
        "fill=\"{}\"/>\n",
        xml_text(scope), scope.empty() ? "" : ":", xml_text(ir::to_string(node.type)), x, y, width,
        chip_height, paint.fill);
    body_ += text_at(x + width / 2, y + 14, ir::to_string(node.op), paint.ink, "text-anchor=\"middle\"") +
             "</g>\n";
  }

  void paint_arrow(double y) {
    const double from = margin + ops_width + 6, to = margin + ops_width + arrow_width - 6;
    body_ += fmt::format(
        "<path d=\"M{0:.1f} {2:.1f} H{1:.1f} m-6 -4 l6 4 l-6 4\" fill=\"none\" stroke=\"#6b7280\" "
        "stroke-width=\"1.5\"/>\n",
        from, to, y);
  }

  void paint_box(const schedule::Step& step, bool setup, double middle) {
    const double x = margin + ops_width + arrow_width, y = middle - step_height / 2;
    const bool kernel = std::holds_alternative<schedule::KernelStep>(step.work);
    const bool gemm = std::holds_alternative<schedule::GemmStep>(step.work);
    const bool copy = std::holds_alternative<schedule::CopyStep>(step.work);
    ++(setup ? setup_ : kernel ? kernels_ : gemm ? gemms_ : copy ? copies_ : memsets_);
    const std::string_view fill = kernel ? kernel_fill : gemm ? gemm_fill : copy_fill;
    body_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.0f}" height="{:.0f}" rx="6" fill="{}"/>)",
                         x, y, step_width, step_height, fill) +
             '\n';
    body_ += text_at(x + 10, y + 16, step.name, "#ffffff", "font-weight=\"bold\"");
    body_ += text_at(x + 10, y + 31, detail(step) + (setup ? ", once" : ""), "#ffffff");
  }

  std::string detail(const schedule::Step& step) const {
    if (const auto* gemm = std::get_if<schedule::GemmStep>(&step.work)) {
      return fmt::format("GEMM, batch {}, m {}, n {}, k {}", gemm->batch.to_string(), gemm->m.to_string(),
                         gemm->n.to_string(), gemm->k.to_string());
    }
    const auto* kernel = std::get_if<schedule::KernelStep>(&step.work);
    if (kernel == nullptr) return std::holds_alternative<schedule::CopyStep>(step.work) ? "copy" : "memset";
    if (kernel->kernel >= origins_.size()) return "a custom kernel, grid " + kernel->grid.to_string();
    return fmt::format("kernel, {} blocks of {} threads", kernel->grid.to_string(),
                       compiled_.stages.source.kernels[kernel->kernel].block_threads);
  }

  static std::string text_at(double x, double y, std::string_view text, std::string_view ink,
                             std::string_view attributes = "") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\"{}{}>{}</text>\n", x, y, ink,
                       attributes.empty() ? "" : " ", attributes, xml_text(text));
  }

  const CompiledGraph& compiled_;
  const ir::Graph& graph_;
  const std::vector<KernelOrigin> origins_;
  std::vector<bool> shown_{};
  std::string body_{};
  double y_ = title_height;
  std::set<ir::NodeId> ops_{};
  std::size_t kernels_ = 0, gemms_ = 0, copies_ = 0, memsets_ = 0, setup_ = 0;
};

}  // namespace

std::string plan_picture(const CompiledGraph& compiled) { return StepsPainter(compiled).run(); }

}  // namespace fuse::fusec
