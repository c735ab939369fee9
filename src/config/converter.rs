//! Converters, typed: which one, with which options, and where its registry is.
//!
//! A connector that names a converter gives all its options; one that does not takes the worker's,
//! and may put options of its own over them. Knows no format. **Invariant:** what is returned
//! together with no fault can be used as it is.

use std::time::Duration;

use super::Secret;
use super::key::KeyDef;
use super::keys::{connect, converter as keys};
use super::layer::Layer;
use super::list::split_list;
use super::values::Values;
use crate::convert::{Converter, DecimalFormat};
use crate::registry::{Address, Authentication, Settings as RegistrySettings};

/// The side of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Keys.
    Key,
    /// Values.
    Value,
}

impl Side {
    /// The first part of the names of its keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
        }
    }

    const fn class_key(self) -> &'static KeyDef {
        match self {
            Self::Key => &connect::KEY_CONVERTER,
            Self::Value => &connect::VALUE_CONVERTER,
        }
    }
}

/// A converter as it was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConverterChoice {
    /// Its class.
    pub class: String,
    /// Its options, without prefix.
    pub options: Layer,
}

/// What one side of a connector's records is written with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConverterSettings {
    /// The converter.
    pub converter: Converter,
    /// The registry, if the converter needs one.
    pub registry: Option<RegistrySettings>,
}

/// The options that stand beside a converter's class.
pub(super) fn options(values: &Values<'_>, side: Side) -> Layer {
    for def in AVRO_OPTIONS.into_iter().chain(JSON_OPTIONS) {
        values.mark_read(def);
    }
    values.under_prefix(&format!("{}.converter.", side.as_str())).into_iter().collect()
}

/// Reads one side's converter; `worker` is what holds where the connector names none.
pub(super) fn parse(
    values: &mut Values<'_>,
    side: Side,
    worker: &ConverterChoice,
) -> ConverterSettings {
    let own = options(values, side);
    let chosen = match values.optional(side.class_key()) {
        Some(class) => ConverterChoice { class: class.to_owned(), options: own },
        None => {
            ConverterChoice { class: worker.class.clone(), options: worker.options.under(&own) }
        }
    };
    note_strangers(values, side, &chosen);
    let is_json = is_json(&chosen.class);
    if is_json {
        let numeric =
            option(&chosen.options, &keys::DECIMAL_FORMAT).eq_ignore_ascii_case("NUMERIC");
        let converter = Converter::Json {
            schemas: !option(&chosen.options, &keys::SCHEMAS_ENABLE).eq_ignore_ascii_case("false"),
            decimals: if numeric { DecimalFormat::Numeric } else { DecimalFormat::Base64 },
        };
        ConverterSettings { converter, registry: None }
    } else {
        let registry = Some(registry(values, side, &chosen.options));
        ConverterSettings { converter: Converter::Avro, registry }
    }
}

fn is_json(class: &str) -> bool {
    let class = class.rsplit('.').next().unwrap_or_default();
    class.eq_ignore_ascii_case("JsonConverter") || class.eq_ignore_ascii_case("Json")
}

/// Options of the converter that was not chosen have no effect, and that is said.
fn note_strangers(values: &mut Values<'_>, side: Side, chosen: &ConverterChoice) {
    let (strangers, owner): (&[&'static KeyDef], _) =
        if is_json(&chosen.class) { (&AVRO_OPTIONS, "Avro") } else { (&JSON_OPTIONS, "JSON") };
    for def in strangers {
        if chosen.options.has(short_name(def)) {
            values.note(
                &full_name(side, def),
                format!("has no effect: belongs to the {owner} converter"),
            );
        }
    }
}

const AVRO_OPTIONS: [&KeyDef; 5] = [
    &keys::REGISTRY_URL,
    &keys::CREDENTIALS_SOURCE,
    &keys::USER_INFO,
    &keys::BEARER_TOKEN,
    &keys::HTTP_READ_TIMEOUT,
];

const JSON_OPTIONS: [&KeyDef; 2] = [&keys::SCHEMAS_ENABLE, &keys::DECIMAL_FORMAT];

/// The name without `<key|value>.converter.`.
fn short_name(def: &'static KeyDef) -> &'static str {
    def.name.split_once(".converter.").map_or(def.name, |(_, name)| name)
}

fn full_name(side: Side, def: &'static KeyDef) -> String {
    format!("{}.converter.{}", side.as_str(), short_name(def))
}

fn option<'o>(options: &'o Layer, def: &'static KeyDef) -> &'o str {
    options.value(short_name(def)).or(def.default()).unwrap_or_default().trim()
}

fn registry(values: &mut Values<'_>, side: Side, options: &Layer) -> RegistrySettings {
    let mut faults = Vec::new();
    let mut fault = |def, message: &str| faults.push((full_name(side, def), message.to_owned()));
    let mut addresses = Vec::new();
    for text in split_list(option(options, &keys::REGISTRY_URL)) {
        match Address::parse(text) {
            Ok(address) => addresses.push(address),
            // What is wrong is said without the address, for it may hold a password.
            Err(refusal) => fault(&keys::REGISTRY_URL, refusal.message()),
        }
    }
    if option(options, &keys::REGISTRY_URL).is_empty() {
        fault(&keys::REGISTRY_URL, "must be given: the Avro converter needs a schema registry");
    }
    let authentication = authentication(options).unwrap_or_else(|(def, message)| {
        fault(def, message);
        Authentication::default()
    });
    for (name, message) in faults {
        values.fault_of_name(&name, message);
    }
    let request_timeout = option(options, &keys::HTTP_READ_TIMEOUT).parse().unwrap_or_default();
    let retry_for = u64::try_from(values.number::<i64>(&connect::ERRORS_RETRY_TIMEOUT)).ok();
    RegistrySettings {
        request_timeout: Duration::from_millis(request_timeout),
        retry_for: retry_for.map(Duration::from_millis),
        longest_delay: values.millis(&connect::ERRORS_RETRY_DELAY_MAX),
        ..RegistrySettings::new(addresses, authentication)
    }
}

fn authentication(options: &Layer) -> Result<Authentication, (&'static KeyDef, &'static str)> {
    let token = option(options, &keys::BEARER_TOKEN);
    let is_basic = option(options, &keys::CREDENTIALS_SOURCE).eq_ignore_ascii_case("USER_INFO");
    match (token, is_basic) {
        ("", false) => Ok(Authentication::Address),
        ("", true) => {
            let message = "must be user:password where basic.auth.credentials.source is USER_INFO";
            let (user, password) = option(options, &keys::USER_INFO)
                .split_once(':')
                .ok_or((&keys::USER_INFO, message))?;
            Ok(Authentication::Basic { user: user.to_owned(), password: Secret::new(password) })
        }
        (token, false) => Ok(Authentication::Bearer(Secret::new(token))),
        (_, true) => Err((
            &keys::BEARER_TOKEN,
            "cannot be given together with basic.auth.credentials.source=USER_INFO",
        )),
    }
}
