//! How grave it is that a column has another type or modifier.
//!
//! What the server does with the values that are there (`ATPrepAlterColumnType`, tablecmds.c; the
//! types' own length coercions), and whether a reader of the records can tell that something was
//! done. Asks nobody. **Invariants:** a change after which values that were published may be others,
//! and which no published schema shows, is [`ChangeClass::Invisible`]; a modifier of a type that is
//! not listed here is taken to change values.

use crate::change::{ChangeClass, NativeType, TableChange, TableVersion};

const BYTEA: u32 = 17;
const TEXT: u32 = 25;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;
const TIME: u32 = 1083;
const TIMESTAMP: u32 = 1114;
const TIMESTAMPTZ: u32 = 1184;
const INTERVAL: u32 = 1186;
const TIMETZ: u32 = 1266;
const BIT: u32 = 1560;
const VARBIT: u32 = 1562;
const NUMERIC: u32 = 1700;
/// The arrays of the types above that have modifiers.
const ARRAYS: [u32; 10] = [1014, 1015, 1115, 1183, 1185, 1187, 1231, 1270, 1561, 1563];

/// What a modifier says of a type's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// The most characters. Fewer cut blanks, or are refused; it is no part of any schema.
    Length,
    /// The number of characters: values are filled up with blanks.
    Padding,
    /// The number of bits.
    Bits,
    /// The most bits.
    VaryingBits,
    /// Digits, and digits behind the point.
    Digits,
    /// Digits of the fraction of a second.
    Fraction,
    /// Fields and digits of a span of time: no schema has either.
    Span,
    /// That of an array's elements.
    Elements,
}

/// What the modifiers of a built-in type mean; `None`: it is not known to have any.
pub const fn modifier_of(type_oid: u32) -> Option<Modifier> {
    Some(match type_oid {
        VARCHAR => Modifier::Length,
        BPCHAR => Modifier::Padding,
        BIT => Modifier::Bits,
        VARBIT => Modifier::VaryingBits,
        NUMERIC => Modifier::Digits,
        TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ => Modifier::Fraction,
        INTERVAL => Modifier::Span,
        _ if is_listed(type_oid) => Modifier::Elements,
        _ => return None,
    })
}

const fn is_listed(type_oid: u32) -> bool {
    let mut rest = ARRAYS.as_slice();
    while let [first, others @ ..] = rest {
        if *first == type_oid {
            return true;
        }
        rest = others;
    }
    false
}

/// Grades the changed types of a change. `unshown`: the columns whose schema is the same as before.
pub(super) fn grade(
    change: &mut TableChange,
    before: &TableVersion,
    after: &TableVersion,
    unshown: &[String],
) {
    let native = |version: &TableVersion, name: &str| {
        let column = version.columns.iter().find(|column| column.name == name);
        column.map(|column| column.native.clone())
    };
    if change.columns.iter().all(|column| column.kind != "retyped") {
        return;
    }
    for column in change.columns.iter_mut().filter(|column| column.kind == "retyped") {
        let name = &column.column;
        let Some((old, new)) = native(before, name).zip(native(after, name)) else { continue };
        column.class = class(&old, &new, !unshown.contains(name));
    }
    // the gravest of all, as it was but for these
    let own = match change.kind {
        "recreated" | "renamed" => ChangeClass::Relation,
        "identity" => ChangeClass::Identity,
        _ => ChangeClass::Additive,
    };
    change.class = change.columns.iter().map(|column| column.class).fold(own, ChangeClass::max);
}

/// `is_shown`: the published schema is another one.
fn class(old: &NativeType, new: &NativeType, is_shown: bool) -> ChangeClass {
    let graded = if old.id == new.id {
        by_modifier(old.id, old.modifier, new.modifier)
    } else {
        by_type(old.id, new.id)
    };
    match graded {
        Grade::Same => ChangeClass::Compatible,
        Grade::Meaning => ChangeClass::Reinterpreted,
        Grade::Text => ChangeClass::Rewriting,
        Grade::Values if is_shown => ChangeClass::Rewriting,
        Grade::Values => ChangeClass::Invisible,
    }
}

/// What becomes of the values that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    /// They stay as they are.
    Same,
    /// Texts lose or gain blanks.
    Text,
    /// They are computed anew.
    Values,
    /// The same bytes mean something else.
    Meaning,
}

const fn by_type(old: u32, new: u32) -> Grade {
    match (old, new) {
        (VARCHAR, TEXT) => Grade::Same,
        (TEXT, VARCHAR | BPCHAR) | (BPCHAR, TEXT | VARCHAR) | (VARCHAR, BPCHAR) => Grade::Text,
        (TIMESTAMP, TIMESTAMPTZ) | (TIMESTAMPTZ, TIMESTAMP) => Grade::Meaning,
        (TIME, TIMETZ) | (TIMETZ, TIME) | (BYTEA, TEXT) | (TEXT, BYTEA) => Grade::Meaning,
        _ => Grade::Values,
    }
}

fn by_modifier(type_oid: u32, old: i32, new: i32) -> Grade {
    let is_wider = new == -1 || (old != -1 && new >= old);
    match modifier_of(type_oid) {
        Some(Modifier::Length) if is_wider => Grade::Same,
        Some(Modifier::Length | Modifier::Padding) => Grade::Text,
        Some(Modifier::Fraction | Modifier::VaryingBits) if is_wider => Grade::Same,
        Some(Modifier::Digits) if has_room(old, new) => Grade::Same,
        _ => Grade::Values,
    }
}

/// Whether `numeric` of the new modifier holds each value of the old one as it is: as many digits
/// behind the point, and no fewer before it (`numeric_support`, numeric.c).
fn has_room(old: i32, new: i32) -> bool {
    const HEADER: i32 = 4;
    if new == -1 {
        return true;
    }
    if old == -1 {
        return false;
    }
    let parts = |modifier: i32| ((modifier - HEADER) >> 16, (modifier - HEADER) & 0x7ff);
    let ((precision, scale), (wider, same)) = (parts(old), parts(new));
    scale == same && wider >= precision
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT8: u32 = 20;
    const INT4: u32 = 23;

    #[track_caller]
    fn check(old: (u32, i32), new: (u32, i32), is_shown: bool, expect: ChangeClass) {
        let native = |(id, modifier)| NativeType { name: String::new(), id, modifier };
        assert_eq!(class(&native(old), &native(new), is_shown), expect);
    }

    const fn numeric(precision: i32, scale: i32) -> (u32, i32) {
        (NUMERIC, (precision << 16 | scale) + 4)
    }

    #[test]
    fn what_holds_more_is_compatible() {
        use ChangeClass::{Compatible, Rewriting};
        check((VARCHAR, 14), (VARCHAR, 24), false, Compatible);
        check((VARCHAR, 14), (VARCHAR, -1), false, Compatible);
        check((VARCHAR, 24), (VARCHAR, 14), false, Rewriting);
        check((VARCHAR, -1), (VARCHAR, 14), false, Rewriting);
        check((VARCHAR, 14), (TEXT, -1), false, Compatible);
        check((TEXT, -1), (VARCHAR, 14), false, Rewriting);
        check((BPCHAR, 14), (BPCHAR, 24), false, Rewriting);
        check(numeric(10, 2), numeric(12, 2), true, Compatible);
        check(numeric(10, 2), (NUMERIC, -1), true, Compatible);
        check((TIMESTAMP, 3), (TIMESTAMP, 6), false, Compatible);
        check((TIMESTAMPTZ, 3), (TIMESTAMPTZ, -1), false, Compatible);
        check((VARBIT, 3), (VARBIT, 5), true, Compatible);
    }

    #[test]
    fn what_changes_values_is_shown_or_invisible() {
        use ChangeClass::{Invisible, Rewriting};
        for (is_shown, expect) in [(true, Rewriting), (false, Invisible)] {
            check(numeric(10, 4), numeric(10, 1), is_shown, expect);
            check(numeric(10, 1), numeric(10, 4), is_shown, expect);
            check(numeric(12, 2), numeric(10, 2), is_shown, expect);
            check((NUMERIC, -1), numeric(10, 2), is_shown, expect);
            check((TIME, 6), (TIME, 2), is_shown, expect);
            check((INTERVAL, -1), (INTERVAL, 0x7fff_0000), is_shown, expect);
            check((INTERVAL, 0x7fff_0000), (INTERVAL, -1), is_shown, expect);
            check((1231, -1), (1231, numeric(10, 2).1), is_shown, expect);
            check((BIT, 3), (BIT, 5), is_shown, expect);
            check((INT4, -1), (INT8, -1), is_shown, expect);
            // domains, and modifiers of types that an extension brings
            check((16_400, -1), (16_401, -1), is_shown, expect);
            check((16_400, 3), (16_400, 4), is_shown, expect);
        }
    }

    #[test]
    fn the_same_bytes_can_mean_something_else() {
        check((TIMESTAMP, -1), (TIMESTAMPTZ, -1), true, ChangeClass::Reinterpreted);
        check((TIMETZ, -1), (TIME, -1), true, ChangeClass::Reinterpreted);
    }
}
