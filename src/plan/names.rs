//! Names that a schema format accepts: Debezium's adjustments, character by character.
//!
//! Characters are UTF-16 code units, as they are in Debezium, so that an adopted topic keeps its
//! schemas. One rule is wider: Debezium looks at the first character of a name only, and leaves a
//! digit at the beginning of a later part, which is not legal. Knows no schema. **Invariant:** a legal name is never changed, except that
//! `avro_unicode` escapes its own escape character, the underscore.

use super::settings::words;

words! {
    /// `schema.name.adjustment.mode` and `field.name.adjustment.mode`.
    NameAdjustment {
        /// As it is.
        None = "none",
        /// Illegal characters become an underscore.
        Avro = "avro",
        /// Illegal characters and the underscore become `_uXXXX`.
        AvroUnicode = "avro_unicode",
    }
}

impl NameAdjustment {
    /// Adjusts the full name of a schema; dots separate its parts.
    pub fn schema_name(self, name: &str) -> String {
        self.adjust(name, true)
    }

    /// Adjusts the name of a field.
    pub fn field_name(self, name: &str) -> String {
        self.adjust(name, false)
    }

    fn adjust(self, name: &str, dotted: bool) -> String {
        if self == Self::None {
            return name.to_owned();
        }
        let mut adjusted = String::with_capacity(name.len());
        let mut first = true;
        for unit in name.encode_utf16() {
            match char::from_u32(unit.into()).filter(char::is_ascii) {
                Some('.') if dotted && !first => {
                    adjusted.push('.');
                    first = true;
                    continue;
                }
                Some(letter) if letter.is_ascii_alphabetic() => adjusted.push(letter),
                Some('_') if self == Self::Avro => adjusted.push('_'),
                Some(digit) if digit.is_ascii_digit() && !first => adjusted.push(digit),
                Some(digit) if digit.is_ascii_digit() && self == Self::Avro => {
                    adjusted.push('_');
                    adjusted.push(digit);
                }
                _ => self.replace(unit, &mut adjusted),
            }
            first = false;
        }
        adjusted
    }

    fn replace(self, unit: u16, adjusted: &mut String) {
        if self == Self::Avro {
            adjusted.push('_');
        } else if unit <= 0xff {
            // Debezium pads with two zeros up to U+00FF and not at all above.
            adjusted.push_str(&format!("_u00{unit:x}"));
        } else {
            adjusted.push_str(&format!("_u{unit:x}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_field(name: &str, avro: &str, unicode: &str) {
        assert_eq!(NameAdjustment::None.field_name(name), name);
        assert_eq!(NameAdjustment::Avro.field_name(name), avro);
        assert_eq!(NameAdjustment::AvroUnicode.field_name(name), unicode);
    }

    #[track_caller]
    fn check_schema(name: &str, avro: &str, unicode: &str) {
        assert_eq!(NameAdjustment::None.schema_name(name), name);
        assert_eq!(NameAdjustment::Avro.schema_name(name), avro);
        assert_eq!(NameAdjustment::AvroUnicode.schema_name(name), unicode);
    }

    #[test]
    fn fields() {
        check_field("Id", "Id", "Id");
        check_field("Two Words", "Two_Words", "Two_u0020Words");
        check_field("a-b", "a_b", "a_u002db");
        check_field("c.d", "c_d", "c_u002ed");
        check_field("é", "_", "_u00e9");
        check_field("1st", "_1st", "_u0031st");
        check_field("$x", "_x", "_u0024x");
        check_field("名前", "__", "_u540d_u524d");
        check_field("_ok", "_ok", "_u005fok");
        check_field("a\tb", "a_b", "a_u009b");
        check_field("я1", "_1", "_u44f1");
        check_field("😀", "__", "_ud83d_ude00");
        check_field("", "", "");
    }

    #[test]
    fn schemas() {
        check_schema(
            "my-shop.Sales-2024.T_1.Key",
            "my_shop.Sales_2024.T_1.Key",
            "my_u002dshop.Sales_u002d2024.T_u005f1.Key",
        );
        check_schema(
            "my-shop.public.1digit.Value",
            "my_shop.public._1digit.Value",
            "my_u002dshop.public._u0031digit.Value",
        );
        check_schema(
            "shop.public._n_____.Envelope",
            "shop.public._n_____.Envelope",
            "shop.public._u005fn_u005f_u005f_u005f_u005f_u005f.Envelope",
        );
    }
}
