//! Strings → typed settings, once, from one definition per key.

mod secret;

pub use secret::Secret;
