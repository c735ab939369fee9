//! `hstore`: text → pairs of key and value, one after another.
//!
//! Reads what the extension's `hstore_out` writes (`contrib/hstore/hstore_io.c`): keys and values
//! in double quotes, a bare NULL, `, ` between pairs. Knows no schema. **Invariant:** pairs keep the
//! server's order, and a value that is the word NULL is not a null.

use super::malformed;
use super::scan::Scan;
use super::text::utf8;
use crate::change::{CellParser, EachPair, KeyValueReader, KeyValues, Scalar, ValueError};

/// `hstore`.
#[derive(Clone, Copy, Debug)]
pub(super) struct HstoreCell;

impl CellParser for HstoreCell {
    /// The pairs are read, and their notation checked, when they are visited.
    fn parse<'a>(&'a self, raw: &'a [u8]) -> Result<Scalar<'a>, ValueError> {
        Ok(Scalar::KeyValues(KeyValues { raw, reader: self }))
    }
}

impl KeyValueReader for HstoreCell {
    fn visit(&self, raw: &[u8], each: &mut EachPair<'_>) -> Result<(), ValueError> {
        let broken = || malformed("hstore", "quoted pairs");
        let mut scan = Scan::new(raw);
        let (mut key_scratch, mut value_scratch) = (Vec::new(), Vec::new());
        while scan.end().is_none() {
            let key = utf8(scan.quoted(&mut key_scratch).ok_or_else(broken)?)?;
            if !scan.eat_all(b"=>") {
                return Err(broken());
            }
            if scan.eat_all(b"NULL") {
                each(key, None)?;
            } else {
                let value = utf8(scan.quoted(&mut value_scratch).ok_or_else(broken)?)?;
                each(key, Some(value))?;
            }
            if scan.end().is_none() && (!scan.eat_all(b", ") || scan.end().is_some()) {
                return Err(broken());
            }
        }
        Ok(())
    }
}
