//! What a metric is: name, type, unit, labels, meaning.
//!
//! Definitions are data; the exposition and `docs/metrics.md` are made from the same tables.
//! **Invariant:** a sample can only be given for a defined metric.

/// The type of a metric, in Prometheus' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, except that it begins again with the task.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Observations counted in buckets.
    Histogram(&'static Buckets),
}

impl MetricKind {
    /// The word of the TYPE line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// The buckets of a histogram.
#[derive(Debug, PartialEq, Eq)]
pub struct Buckets {
    /// Upper bounds, ascending, in the counted unit; above the last one there is one bucket more.
    pub bounds: &'static [u64],
    /// How many of the counted unit make one of the shown unit.
    pub per_unit: u32,
}

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// What it is measured in.
    pub unit: &'static str,
    /// The names of its labels, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// Metrics that belong together.
#[derive(Debug)]
pub struct Group {
    /// The heading on the documentation page.
    pub title: &'static str,
    /// The metrics in the order of display.
    pub metrics: &'static [&'static Metric],
}

/// Defines a group of metrics: a constant for each, and one for the group.
macro_rules! metrics {
    (
        $(#[$doc:meta])*
        $group:ident $title:literal
        $($name:ident $text:literal $kind:expr, $unit:literal, [$($label:literal),*], $help:literal;)*
    ) => {
        $(
            pub(crate) static $name: $crate::observe::Metric = $crate::observe::Metric {
                name: $text,
                kind: $kind,
                unit: $unit,
                labels: &[$($label),*],
                help: $help,
            };
        )*
        $(#[$doc])*
        pub(crate) static $group: $crate::observe::Group =
            $crate::observe::Group { title: $title, metrics: &[$(&$name),*] };
    };
}

pub(crate) use metrics;
