//! The neutral keys, by subject; a source's own keys stand in the source's folder.
//!
//! A table has three parts: what is carried out (each key a constant, for its reader), what is
//! accepted without effect, and what is refused. **Invariant:** a test reads every key of the first
//! part through the parser, so that none of them can be accepted and ignored.

pub mod connect;
pub mod converter;
pub mod delivery;
pub mod envelope;
pub mod snapshot;
pub mod transforms;
pub mod worker;

/// What a worker has beside sources: the full class names of what is carried out, with Connect's
/// word for its kind.
pub fn plug_ins() -> impl Iterator<Item = (&'static str, &'static str)> {
    [
        (transforms::TRANSFORM_CLASSES, "transformation"),
        (transforms::PREDICATE_CLASSES, "predicate"),
        (connect::CONVERTERS, "converter"),
        (connect::HEADER_CONVERTERS, "header_converter"),
    ]
    .into_iter()
    .flat_map(|(classes, kind)| {
        let carried_out = classes.iter().filter(|class| class.refused.is_none());
        carried_out.map(move |class| (class.value, kind))
    })
    // short names are other names of the same
    .filter(|(class, _)| class.contains('.'))
}

/// Defines a table of keys. A row is `CONSTANT "name" Kind (default) Importance "documentation"
/// rule;` where it is carried out, else `"name" Kind (default) "why" rule;`. The default is
/// `(required)`, `()` for none, or a text; the rule may be left out.
macro_rules! keys {
    (
        $(#[doc = $table_doc:literal])*
        $table:ident $group:literal
        supported {
            $($const:ident $name:literal $kind:ident ($($presence:tt)*) $importance:ident $doc:literal
                $($rule:expr)?;)*
        }
        no effect {
            $($idle:literal $idle_kind:ident ($($idle_presence:tt)*) $why_idle:literal
                $($idle_rule:expr)?;)*
        }
        refused {
            $($refused:literal $refused_kind:ident ($($refused_presence:tt)*) $why:literal;)*
        }
    ) => {
        $(
            #[doc = concat!("`", $name, "`: ", $doc)]
            pub const $const: $crate::config::KeyDef = $crate::config::KeyDef {
                name: $name,
                kind: $crate::config::Kind::$kind,
                presence: $crate::config::keys::presence!($($presence)*),
                importance: $crate::config::Importance::$importance,
                status: $crate::config::Status::Supported,
                rule: $crate::config::keys::rule!($($rule)?),
                doc: $doc,
            };
        )*
        $(#[doc = $table_doc])*
        pub const $table: $crate::config::Table = $crate::config::Table {
            group: $group,
            keys: &[
                $($const,)*
                $($crate::config::KeyDef {
                    name: $idle,
                    kind: $crate::config::Kind::$idle_kind,
                    presence: $crate::config::keys::presence!($($idle_presence)*),
                    importance: $crate::config::Importance::Low,
                    status: $crate::config::Status::NoEffect($why_idle),
                    rule: $crate::config::keys::rule!($($idle_rule)?),
                    doc: $why_idle,
                },)*
                $($crate::config::KeyDef {
                    name: $refused,
                    kind: $crate::config::Kind::$refused_kind,
                    presence: $crate::config::keys::presence!($($refused_presence)*),
                    importance: $crate::config::Importance::Low,
                    status: $crate::config::Status::Refused($why),
                    rule: $crate::config::Rule::Any,
                    doc: $why,
                },)*
            ],
        };
    };
}

macro_rules! presence {
    () => {
        $crate::config::Presence::Optional
    };
    (required) => {
        $crate::config::Presence::Required
    };
    ($default:literal) => {
        $crate::config::Presence::Default($default)
    };
}

macro_rules! rule {
    () => {
        $crate::config::Rule::Any
    };
    ($rule:expr) => {
        $rule
    };
}

pub(crate) use {keys, presence, rule};
