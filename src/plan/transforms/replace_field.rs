//! `ReplaceField`: fields left out and renamed, in the key or in the value.
//!
//! Knows no column. **Invariants:** two fields never share a name; a key never loses all its
//! fields.

use std::sync::Arc;

use super::fields_of;
use crate::error::{Code, Fault};
use crate::plan::fingerprint::Fingerprint;
use crate::record::{Field, Kind, Node, RecordShape, Schema, Shape, Side};

/// `org.apache.kafka.connect.transforms.ReplaceField$Key` and `$Value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplaceField {
    /// Which half of the record.
    pub side: Side,
    /// Only these fields are kept; none: all.
    pub include: Vec<String>,
    /// These are not, even if they are in `include`.
    pub exclude: Vec<String>,
    /// Names and what they become.
    pub renames: Vec<(String, String)>,
}

impl ReplaceField {
    pub(super) fn apply(&self, mut record: RecordShape) -> Result<RecordShape, Fault> {
        let half = match self.side {
            Side::Key => &mut record.key,
            Side::Value => &mut record.value,
        };
        if let Some(shape) = half.take() {
            *half = Some(self.replace(&shape)?);
        }
        Ok(record)
    }

    fn replace(&self, shape: &Shape) -> Result<Shape, Fault> {
        let shapes = fields_of(shape)?;
        let mut fields: Vec<Field> = Vec::with_capacity(shapes.len());
        let mut nodes = Vec::with_capacity(shapes.len());
        for (field, shape) in shape.schema.fields().iter().zip(shapes) {
            if !self.keeps(&field.name) {
                continue;
            }
            let name = self.renamed(&field.name);
            if fields.iter().any(|other| other.name == name) {
                return Err(Code::SchemaIllegalName
                    .fault(format!("two fields of the {} would be called '{name}'", self.word()))
                    .about("renames")
                    .hint("Correct renames."));
            }
            fields.push(Field { name: name.to_owned(), schema: Arc::clone(&field.schema) });
            nodes.push(shape.clone());
        }
        if fields.is_empty() && self.side == Side::Key {
            return Err(Code::TransformUnfit.fault("no field of the key would be left"));
        }
        let schema = Schema {
            kind: Kind::Struct(fields),
            optional: false,
            default: None,
            ..(*shape.schema).clone()
        };
        Ok(Shape { schema: Arc::new(schema), node: Node::Struct(nodes) })
    }

    fn keeps(&self, name: &str) -> bool {
        let among = |names: &[String]| names.iter().any(|one| one == name);
        !among(&self.exclude) && (self.include.is_empty() || among(&self.include))
    }

    fn renamed<'n>(&'n self, name: &'n str) -> &'n str {
        // The last of two counts, as in a map.
        let found = self.renames.iter().rev().find(|(from, _)| from == name);
        found.map_or(name, |(_, to)| to)
    }

    const fn word(&self) -> &'static str {
        self.side.as_str()
    }

    pub(super) fn fingerprint(&self, hash: &mut Fingerprint) {
        hash.text(self.word());
        for names in [&self.include, &self.exclude] {
            hash.number(names.len() as u64);
            names.iter().for_each(|name| hash.text(name));
        }
        hash.number(self.renames.len() as u64);
        for (from, to) in &self.renames {
            hash.text(from);
            hash.text(to);
        }
    }
}
