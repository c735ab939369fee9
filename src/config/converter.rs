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
use crate::convert::{Converter, DecimalFormat, HeaderConverter};
pub use crate::plan::Side;
use crate::registry::{
    Address, Authentication, Lookup, Settings as RegistrySettings, SubjectNaming,
};

const fn class_key(side: Side) -> &'static KeyDef {
    match side {
        Side::Key => &connect::KEY_CONVERTER,
        Side::Value => &connect::VALUE_CONVERTER,
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

/// The first part of the names of the header converter's keys.
pub(super) const HEADER: &str = "header";

/// The options that stand beside a converter's class; `part` is the first of their names.
pub(super) fn options(values: &Values<'_>, part: &str) -> Layer {
    for def in AVRO_OPTIONS.into_iter().chain(JSON_OPTIONS) {
        values.mark_read(def);
    }
    values.under_prefix(&format!("{part}.converter.")).into_iter().collect()
}

/// The converter that holds for one part of a record.
fn choose(
    values: &Values<'_>,
    part: &str,
    class: &'static KeyDef,
    worker: &ConverterChoice,
) -> ConverterChoice {
    let own = options(values, part);
    match values.optional(class) {
        Some(class) => ConverterChoice { class: class.to_owned(), options: own },
        None => {
            ConverterChoice { class: worker.class.clone(), options: worker.options.under(&own) }
        }
    }
}

/// Reads one side's converter; `worker` is what holds where the connector names none.
pub(super) fn parse(
    values: &mut Values<'_>,
    side: Side,
    worker: &ConverterChoice,
) -> ConverterSettings {
    let class_key = class_key(side);
    let chosen = choose(values, side.as_str(), class_key, worker);
    let format = Format::of(&chosen.class);
    note_strangers(values, side.as_str(), &chosen.options, format);
    if format == Format::Bytes && values.under_prefix("transforms.").is_empty() {
        // Only a transform makes something else of them.
        let message = "ByteArrayConverter writes bytes only, and change records are structs";
        values.fault(class_key, message);
    }
    let registry = (format == Format::Avro).then(|| registry(values, side, &chosen.options));
    let converter = match format {
        Format::Avro => Converter::Avro,
        Format::Json => {
            let (schemas, decimals) = json_options(&chosen.options);
            Converter::Json { schemas, decimals }
        }
        Format::Text | Format::SimpleHeader => Converter::Text,
        Format::Bytes => Converter::Bytes,
    };
    ConverterSettings { converter, registry }
}

/// Reads the header converter; `worker` is what holds where the connector names none.
pub(super) fn parse_header(values: &mut Values<'_>, worker: &ConverterChoice) -> HeaderConverter {
    let chosen = choose(values, HEADER, &connect::HEADER_CONVERTER, worker);
    let format = Format::of(&chosen.class);
    note_strangers(values, HEADER, &chosen.options, format);
    match format {
        Format::Json => {
            let (schemas, decimals) = json_options(&chosen.options);
            HeaderConverter::Json { schemas, decimals }
        }
        Format::Text => HeaderConverter::Text,
        Format::SimpleHeader | Format::Avro | Format::Bytes => HeaderConverter::Simple,
    }
}

/// What a converter's class writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Avro,
    Json,
    Text,
    Bytes,
    SimpleHeader,
}

impl Format {
    /// Of a class by its full or its short name; a name that is none of them has its fault already.
    fn of(class: &str) -> Self {
        let class = class.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        match class.strip_suffix("converter").unwrap_or(&class) {
            "json" => Self::Json,
            "string" => Self::Text,
            "bytearray" => Self::Bytes,
            "simple" | "simpleheader" => Self::SimpleHeader,
            _ => Self::Avro,
        }
    }
}

/// `schemas.enable` and `decimal.format`.
fn json_options(options: &Layer) -> (bool, DecimalFormat) {
    let numeric = option(options, &keys::DECIMAL_FORMAT).eq_ignore_ascii_case("NUMERIC");
    let schemas = !option(options, &keys::SCHEMAS_ENABLE).eq_ignore_ascii_case("false");
    (schemas, if numeric { DecimalFormat::Numeric } else { DecimalFormat::Base64 })
}

/// Options of a converter that was not chosen have no effect, and that is said.
fn note_strangers(values: &mut Values<'_>, part: &str, options: &Layer, chosen: Format) {
    let owners: [(&[&'static KeyDef], _, _); 2] =
        [(&AVRO_OPTIONS, Format::Avro, "Avro"), (&JSON_OPTIONS, Format::Json, "JSON")];
    for (strangers, owner, name) in owners {
        for def in strangers.iter().filter(|_| owner != chosen) {
            if options.has(short_name(def)) {
                let message = format!("has no effect: belongs to the {name} converter");
                values.note(&full_name(part, def), message);
            }
        }
    }
}

const AVRO_OPTIONS: [&KeyDef; 9] = [
    &keys::REGISTRY_URL,
    &keys::CREDENTIALS_SOURCE,
    &keys::USER_INFO,
    &keys::BEARER_TOKEN,
    &keys::HTTP_READ_TIMEOUT,
    &keys::AUTO_REGISTER,
    &keys::USE_LATEST,
    &keys::KEY_STRATEGY,
    &keys::VALUE_STRATEGY,
];

const JSON_OPTIONS: [&KeyDef; 2] = [&keys::SCHEMAS_ENABLE, &keys::DECIMAL_FORMAT];

/// The name without `<key|value>.converter.`.
fn short_name(def: &'static KeyDef) -> &'static str {
    def.name.split_once(".converter.").map_or(def.name, |(_, name)| name)
}

fn full_name(part: &str, def: &'static KeyDef) -> String {
    format!("{part}.converter.{}", short_name(def))
}

fn option<'o>(options: &'o Layer, def: &'static KeyDef) -> &'o str {
    options.value(short_name(def)).or(def.default()).unwrap_or_default().trim()
}

fn registry(values: &mut Values<'_>, side: Side, options: &Layer) -> RegistrySettings {
    let mut faults = Vec::new();
    let mut fault =
        |def, message: &str| faults.push((full_name(side.as_str(), def), message.to_owned()));
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
        naming: naming(values, side, options),
        lookup: lookup(values, side, options),
        request_timeout: Duration::from_millis(request_timeout),
        retry_for: retry_for.map(Duration::from_millis),
        longest_delay: values.millis(&connect::ERRORS_RETRY_DELAY_MAX),
        ..RegistrySettings::new(addresses, authentication)
    }
}

/// A key converter looks at its option for keys alone, a value converter at its option for values.
fn naming(values: &mut Values<'_>, side: Side, options: &Layer) -> SubjectNaming {
    let (own, other) = match side {
        Side::Key => (&keys::KEY_STRATEGY, &keys::VALUE_STRATEGY),
        Side::Value => (&keys::VALUE_STRATEGY, &keys::KEY_STRATEGY),
    };
    if options.has(short_name(other)) {
        let message =
            format!("has no effect: a {} converter takes {}", side.as_str(), short_name(own));
        values.note(&full_name(side.as_str(), other), message);
    }
    // a name that is none of them has its fault already
    SubjectNaming::of_class(option(options, own)).unwrap_or_default()
}

/// As Confluent's serializer decides: who registers does not look for the latest version.
fn lookup(values: &mut Values<'_>, side: Side, options: &Layer) -> Lookup {
    let is_set = |def| option(options, def).eq_ignore_ascii_case("true");
    match (is_set(&keys::AUTO_REGISTER), is_set(&keys::USE_LATEST)) {
        (true, false) => Lookup::Register,
        (true, true) => {
            let name = full_name(side.as_str(), &keys::USE_LATEST);
            values.note(&name, "has no effect unless auto.register.schemas=false");
            Lookup::Register
        }
        (false, false) => Lookup::Exact,
        (false, true) => Lookup::Latest,
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
