//! Enum labels that the schema does not list yet.
//!
//! Neither a new label nor a renamed one makes the server send a new description of the type or of
//! the table, so the rows themselves are the first to show it. Where the published schema lists the
//! labels, the driver asks here before a row is converted, fetches the type again, and compiles a new
//! table version. Knows no catalogue. **Invariant:** rows with known labels cost a search, no more.

use std::sync::Arc;

use super::array::ArrayCell;
use super::text::TextCell;
use crate::change::{Scalar, SequenceReader};

/// Tells whether a cell of an enum column, or of a column of enum arrays, has an unlisted label.
#[derive(Clone, Debug)]
pub struct LabelCheck {
    enum_oid: u32,
    sorted: Box<[String]>,
    array: Option<ArrayCell>,
}

impl LabelCheck {
    /// For cells that are labels.
    pub(super) fn of_label(enum_oid: u32, labels: &[String]) -> Self {
        let mut sorted: Box<[String]> = labels.into();
        sorted.sort_unstable();
        Self { enum_oid, sorted, array: None }
    }

    /// The same for cells that are arrays of labels.
    pub(super) fn of_array(mut self, delimiter: u8) -> Self {
        self.array = Some(ArrayCell::new(Arc::new(TextCell), delimiter));
        self
    }

    /// The enum type.
    pub const fn enum_oid(&self) -> u32 {
        self.enum_oid
    }

    /// The first label in the cell that is not listed. A cell that cannot be read has none: its
    /// parser says what is wrong with it.
    pub fn first_unknown(&self, raw: &[u8]) -> Option<String> {
        let Some(array) = &self.array else {
            return self.unknown(raw);
        };
        let mut first = None;
        let visited = array.visit(raw, &mut |element| {
            if let (None, Scalar::Text(label)) = (&first, element) {
                first = self.unknown(label.as_bytes());
            }
            Ok(())
        });
        visited.ok().and(first)
    }

    fn unknown(&self, raw: &[u8]) -> Option<String> {
        match self.sorted.binary_search_by(|label| label.as_bytes().cmp(raw)) {
            Ok(_) => None,
            Err(_) => std::str::from_utf8(raw).ok().map(str::to_owned),
        }
    }
}
