//! Samples → Prometheus' text format, version 0.0.4.
//!
//! The format's rules: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
//! **Invariants:** the samples of one metric stand together below its HELP and TYPE; a label's value
//! may be any text.

use std::collections::HashMap;

use super::metric::{Group, Metric};
use super::numbers::Histogram;

/// The format's media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Collects samples in any order.
#[derive(Debug, Default)]
pub struct Exposition {
    /// The lines of each metric.
    lines: HashMap<&'static str, String>,
}

impl Exposition {
    /// Adds a sample. `values` has one for each of the metric's labels.
    pub fn add(&mut self, metric: &'static Metric, values: &[&str], sample: f64) {
        let lines = self.lines.entry(metric.name).or_default();
        write_sample(lines, metric.name, "", (metric.labels, values), None, sample);
    }

    /// Adds a count.
    pub fn add_count(&mut self, metric: &'static Metric, values: &[&str], count: u64) {
        self.add(metric, values, count as f64);
    }

    /// Adds a histogram.
    pub fn add_histogram(
        &mut self,
        metric: &'static Metric,
        values: &[&str],
        histogram: &Histogram,
    ) {
        let lines = self.lines.entry(metric.name).or_default();
        let labels = (metric.labels, values);
        let mut count = 0;
        for (bound, sum) in histogram.cumulative() {
            let bound = bound.unwrap_or(f64::INFINITY);
            write_sample(lines, metric.name, "_bucket", labels, Some(bound), sum as f64);
            count = sum;
        }
        write_sample(lines, metric.name, "_sum", labels, None, histogram.sum());
        write_sample(lines, metric.name, "_count", labels, None, count as f64);
    }

    /// The whole text: metrics in the order of their definitions, without those that have no
    /// sample.
    pub fn finish<'g>(self, groups: impl IntoIterator<Item = &'g Group>) -> String {
        let mut text = String::new();
        for metric in groups.into_iter().flat_map(|group| group.metrics) {
            let Some(lines) = self.lines.get(metric.name) else { continue };
            text.push_str("# HELP ");
            text.push_str(metric.name);
            text.push(' ');
            escape(&mut text, metric.help, false);
            text.push_str("\n# TYPE ");
            text.push_str(metric.name);
            text.push(' ');
            text.push_str(metric.kind.as_str());
            text.push('\n');
            text.push_str(lines);
        }
        text
    }
}

fn write_sample(
    out: &mut String,
    name: &str,
    suffix: &str,
    (labels, values): (&[&str], &[&str]),
    bound: Option<f64>,
    sample: f64,
) {
    out.push_str(name);
    out.push_str(suffix);
    let mut separator = '{';
    for (label, value) in labels.iter().zip(values) {
        out.push(separator);
        out.push_str(label);
        out.push_str("=\"");
        escape(out, value, true);
        out.push('"');
        separator = ',';
    }
    if let Some(bound) = bound {
        out.push(separator);
        out.push_str("le=\"");
        out.push_str(&number(bound));
        out.push('"');
        separator = ',';
    }
    if separator == ',' {
        out.push('}');
    }
    out.push(' ');
    out.push_str(&number(sample));
    out.push('\n');
}

/// A number as the format wants it.
fn number(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() }
}

fn escape(out: &mut String, text: &str, quotes: bool) {
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric::{Buckets, MetricKind, metrics};
    use super::*;

    static BUCKETS: Buckets = Buckets { bounds: &[5000], per_unit: 1_000_000 };

    metrics! {
        /// For these tests.
        TESTED "Tested"
        PLAIN "plain" MetricKind::Gauge, "", [], "With a \\ and a \" in it.";
        LABELLED "labelled_total" MetricKind::Counter, "", ["one", "two"], "Labels.";
        SPREAD "spread_seconds" MetricKind::Histogram(&BUCKETS), "s", ["one"], "Buckets.";
        UNUSED "unused" MetricKind::Gauge, "", [], "Nothing.";
    }

    #[test]
    fn samples_stand_together_below_their_metric() {
        let mut exposition = Exposition::default();
        exposition.add_count(&LABELLED, &["a", "b"], 1);
        exposition.add(&PLAIN, &[], -0.5);
        exposition.add_count(&LABELLED, &["say \"hi\"", "back\\slash\nand line"], 2);
        let histogram = Histogram::new(&BUCKETS);
        histogram.observe(1);
        histogram.observe(7000);
        exposition.add_histogram(&SPREAD, &["x"], &histogram);
        let text = exposition.finish([&TESTED]);
        expect_test::expect![[r#"
            # HELP plain With a \\ and a " in it.
            # TYPE plain gauge
            plain -0.5
            # HELP labelled_total Labels.
            # TYPE labelled_total counter
            labelled_total{one="a",two="b"} 1
            labelled_total{one="say \"hi\"",two="back\\slash\nand line"} 2
            # HELP spread_seconds Buckets.
            # TYPE spread_seconds histogram
            spread_seconds_bucket{one="x",le="0.005"} 1
            spread_seconds_bucket{one="x",le="+Inf"} 2
            spread_seconds_sum{one="x"} 0.007001
            spread_seconds_count{one="x"} 2
        "#]]
        .assert_eq(&text);
        assert_eq!(UNUSED.labels.len(), 0);
    }
}
