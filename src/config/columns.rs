//! `column.*`, typed.
//!
//! **Invariant:** every key of these families becomes a rule or is a fault.

use regex::Regex;

use super::fault::ConfigFault;
use super::keys::envelope as keys;
use super::list::parse_patterns;
use super::values::Values;
use crate::error::Code;
use crate::plan::{ColumnRules, ColumnTreatment, HashAlgorithm, HashInput, Treatment};

/// The longest mask, characters.
const LONGEST_MASK: usize = 1 << 16;

/// Reads the rules for columns.
pub(super) fn parse(values: &mut Values<'_>) -> ColumnRules {
    if values.is_given(&keys::COLUMN_INCLUDE) && values.is_given(&keys::COLUMN_EXCLUDE) {
        let message = format!("cannot be given together with {}", keys::COLUMN_INCLUDE.name);
        values.fault(&keys::COLUMN_EXCLUDE, message);
    }
    let mut treatments = Vec::new();
    let mut faults = Vec::new();
    let families =
        [&keys::COLUMN_MASK, &keys::COLUMN_TRUNCATE, &keys::COLUMN_HASH, &keys::COLUMN_HASH_V2];
    for (key, text) in values.covered_by(&families) {
        match (treatment(key), parse_patterns(text)) {
            (Ok(treatment), Ok(columns)) => {
                treatments.push(ColumnTreatment { key: key.to_owned(), columns, treatment });
            }
            (Err(message), _) => faults.push(ConfigFault::new(Code::ConfigInvalid, key, message)),
            // The list's own rule has said so.
            (Ok(_), Err(_)) => {}
        }
    }
    faults.into_iter().for_each(|fault| values.push_fault(fault));
    let list = |def| -> Option<Vec<Regex>> { values.patterns(def) };
    ColumnRules {
        include: list(&keys::COLUMN_INCLUDE),
        exclude: list(&keys::COLUMN_EXCLUDE),
        propagate_columns: list(&keys::PROPAGATE_COLUMNS),
        propagate_types: list(&keys::PROPAGATE_TYPES),
        treatments,
    }
}

/// What a key's name asks for.
fn treatment(key: &str) -> Result<Treatment, String> {
    let number = |text: &str| {
        let number = text.parse().ok().filter(|number| *number <= LONGEST_MASK);
        number.ok_or_else(|| format!("the number in its name must be from 0 to {LONGEST_MASK}"))
    };
    if let Some(rest) = key.strip_prefix("column.mask.with.") {
        return number(rest.trim_end_matches(".chars")).map(Treatment::Mask);
    }
    if let Some(rest) = key.strip_prefix("column.truncate.to.") {
        return number(rest.trim_end_matches(".chars")).map(Treatment::Truncate);
    }
    let rest = key.trim_start_matches("column.mask.hash.");
    let (rest, input) = match rest.strip_prefix("v2.") {
        Some(rest) => (rest, HashInput::Utf8),
        None => (rest, HashInput::JavaObject),
    };
    let (name, salt) = rest.split_once(".with.salt.").unwrap_or((rest, ""));
    let algorithm = HashAlgorithm::from_name(name).ok_or_else(|| {
        let names: Vec<_> = HashAlgorithm::ALL.iter().map(|(name, _)| *name).collect();
        format!("the algorithm in its name must be one of {}", names.join(", "))
    })?;
    Ok(Treatment::Hash { algorithm, salt: salt.as_bytes().to_vec(), input })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, expect: Result<&Treatment, &str>) {
        let treatment = treatment(key);
        assert_eq!(treatment.as_ref().map_err(String::as_str), expect);
    }

    #[test]
    fn a_keys_name_says_what_is_done() {
        check("column.mask.with.12.chars", Ok(&Treatment::Mask(12)));
        check("column.truncate.to.0.chars", Ok(&Treatment::Truncate(0)));
        let number = "the number in its name must be from 0 to 65536";
        check("column.mask.with.-1.chars", Err(number));
        check("column.truncate.to.many.chars", Err(number));
        let hash = |algorithm, salt: &str, input| Treatment::Hash {
            algorithm,
            salt: salt.as_bytes().to_vec(),
            input,
        };
        check(
            "column.mask.hash.SHA-256.with.salt.a.with.salt.b",
            Ok(&hash(HashAlgorithm::Sha256, "a.with.salt.b", HashInput::JavaObject)),
        );
        check(
            "column.mask.hash.v2.md5.with.salt.x",
            Ok(&hash(HashAlgorithm::Md5, "x", HashInput::Utf8)),
        );
        check(
            "column.mask.hash.CRC.with.salt.x",
            Err(
                "the algorithm in its name must be one of MD5, SHA-1, SHA-256, SHA-384, SHA-512, SHA-512/256",
            ),
        );
    }
}
