//! Hermetic tests of the whole crate: one binary, one module per subject.
