// SPDX-License-Identifier: GPL-2.0
#include "daemon/base/prometheus_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace memsluice {
namespace {

using Kind = PrometheusText::Kind;

TEST(PrometheusText, IsFamiliesWithSamples) {
  PrometheusText text;
  text.family("x_bytes_total", Kind::kCounter, "What went.");
  text.sample({{"channel", "a"}, {"node", "0"}}, uint64_t{18446744073709551615u});
  text.sample({}, 0.25);
  text.family("nothing", Kind::kGauge, "Not there.");
  text.family("y", Kind::kGauge, "There.");
  text.sample({}, NAN);
  EXPECT_EQ(text.text(), R"(# HELP x_bytes_total What went.
# TYPE x_bytes_total counter
x_bytes_total{channel="a",node="0"} 18446744073709551615
x_bytes_total 0.25
# HELP y There.
# TYPE y gauge
y NaN
)");
}

TEST(PrometheusText, SpellsOutWhatALabelCannotBe) {
  PrometheusText text;
  text.family("x", Kind::kGauge, "X.");
  text.sample({{"cgroup", "/a\\x2d\"b\"\n\xff"}}, uint64_t{1});
  EXPECT_EQ(text.text(),
            "# HELP x X.\n# TYPE x gauge\nx{cgroup=\"/a\\\\x2d\\\"b\\\"\\\\x0a\\\\xff\"} 1\n");
}

TEST(PrometheusText, AddsUpAHistogram) {
  PrometheusText text;
  text.family("d_seconds", Kind::kHistogram, "How long.");
  text.histogram({{"t", "a"}}, {1e-6, 2e-6}, {3, 0, 4}, 1.5);
  EXPECT_EQ(text.text(), R"(# HELP d_seconds How long.
# TYPE d_seconds histogram
d_seconds_bucket{t="a",le="1e-06"} 3
d_seconds_bucket{t="a",le="2e-06"} 3
d_seconds_bucket{t="a",le="+Inf"} 7
d_seconds_sum{t="a"} 1.5
d_seconds_count{t="a"} 7
)");
}

}  // namespace
}  // namespace memsluice
