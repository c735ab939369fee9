//! Scalar → primitive: how a neutral value becomes what a schema asks for, once for all converters.

use crate::change::{Scalar, ValueError};

/// How a value of a column becomes the primitive of its schema. Chosen when a plan is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Render {
    /// As it is.
    Plain,
}

/// Where a rendered value goes. Each converter implements it once.
pub trait Primitive {
    /// Kind boolean.
    fn boolean(&mut self, value: bool);
}

/// Writes a scalar in the given way.
///
/// # Errors
/// The value does not fit exactly.
pub fn render(
    _scalar: Scalar<'_>,
    _how: &Render,
    _out: &mut impl Primitive,
) -> Result<(), ValueError> {
    Ok(())
}
