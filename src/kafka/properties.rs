//! Client properties by their Java names → the Kafka client's own names.
//!
//! Users bring `producer.override.*` and worker properties that were written for Java's client.
//! Each name has one rule in a table: handed on, converted, checked against what exactly-once
//! delivery forces, or refused with the reason. Knows no Kafka client.
//! **Invariant:** a property that is not carried out is refused; none is dropped in silence.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Code, Fault};

/// Which client the properties are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// Writes records, offsets and states.
    Producer,
    /// Reads the internal topics.
    Consumer,
    /// Creates and describes topics.
    Admin,
}

/// A property that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyFault {
    /// Its name, as given.
    pub name: String,
    /// Why.
    pub fault: Fault,
}

/// Properties under the Kafka client's own names. Prints without secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientProperties(BTreeMap<String, String>);

impl ClientProperties {
    /// Translates properties given by Java's names (without any prefix); of a name that comes
    /// twice the last one counts, so that layers may be chained.
    ///
    /// # Errors
    /// One fault for each property that cannot be carried out.
    pub fn translate<'a>(
        kind: ClientKind,
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<PropertyFault>> {
        let given: BTreeMap<&str, &str> =
            properties.into_iter().map(|(name, value)| (name, value.trim())).collect();
        let mut translation = Translation { kind, given: &given, out: BTreeMap::new() };
        let mut faults = Vec::new();
        for (name, value) in &given {
            if let Err(fault) = translation.property(name, value) {
                faults.push(PropertyFault { name: (*name).to_owned(), fault });
            }
        }
        if faults.is_empty() { Ok(Self(translation.out)) } else { Err(faults) }
    }

    /// A value by the client's own name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, by the client's own names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `bootstrap.servers`, for messages.
    pub fn bootstrap_servers(&self) -> &str {
        self.get("bootstrap.servers").unwrap_or("(not set)")
    }
}

impl fmt::Debug for ClientProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .iter()
            .map(|(name, value)| (name, if is_secret(name) { "[hidden]" } else { value }));
        f.debug_map().entries(shown).finish()
    }
}

/// Whether a property's value must not be printed.
pub(super) fn is_secret(name: &str) -> bool {
    name.contains("password") || name.contains("jaas") || name.ends_with(".pem")
}

/// What becomes of a property.
enum Rule {
    /// Handed on under this name.
    As(&'static str),
    /// Handed on under this name, in lower case.
    Lower(&'static str),
    /// Bytes, handed on under this name as KiB, rounded up.
    KibibytesAs(&'static str),
    /// A number that must not fall below this one, handed on under this name.
    AtLeastAs(&'static str, i64),
    /// Must have one of these values, because exactly-once delivery forces it.
    Forced(&'static [&'static str]),
    /// Needs code of its own.
    Special(fn(&mut Translation<'_, '_>, &str) -> Result<(), Fault>),
    /// Not carried out.
    Refused(&'static str),
}

use Rule::{As, AtLeastAs, Forced, KibibytesAs, Lower, Refused, Special};

const JVM: &str = "it names code that runs in a Java virtual machine";
const OWN: &str = "the worker sets it itself";
const NO_COUNTERPART: &str = "the native Kafka client has nothing like it";
const NO_LIMIT: &str = "waiting for room has no limit here: a slow broker slows the reader down";
const KERBEROS: &str = "Kerberos is not built in";
const OAUTH: &str = "OAUTHBEARER is not built in";
const STORES: &str = "give certificates as PEM: ssl.truststore.type=PEM with ssl.truststore.location \
                      or ssl.truststore.certificates";

/// Properties of every kind of client.
const COMMON: &[(&str, Rule)] = &[
    ("bootstrap.servers", As("bootstrap.servers")),
    ("broker.address.family", As("broker.address.family")),
    ("client.dns.lookup", As("client.dns.lookup")),
    ("client.id", As("client.id")),
    ("connections.max.idle.ms", AtLeastAs("connections.max.idle.ms", 0)),
    ("debug", As("debug")),
    ("enable.metrics.push", Lower("enable.metrics.push")),
    ("enable.ssl.certificate.verification", Lower("enable.ssl.certificate.verification")),
    ("metadata.max.age.ms", AtLeastAs("topic.metadata.refresh.interval.ms", 10)),
    ("metadata.recovery.rebootstrap.trigger.ms", As("metadata.recovery.rebootstrap.trigger.ms")),
    ("metadata.recovery.strategy", Lower("metadata.recovery.strategy")),
    ("metric.reporters", Refused(JVM)),
    ("metrics.num.samples", Refused(JVM)),
    ("metrics.recording.level", Refused(JVM)),
    ("metrics.sample.window.ms", Refused(JVM)),
    ("receive.buffer.bytes", AtLeastAs("socket.receive.buffer.bytes", 0)),
    ("reconnect.backoff.max.ms", As("reconnect.backoff.max.ms")),
    ("reconnect.backoff.ms", As("reconnect.backoff.ms")),
    ("request.timeout.ms", AtLeastAs("socket.timeout.ms", 10)),
    ("retries", As("retries")),
    ("retry.backoff.max.ms", AtLeastAs("retry.backoff.max.ms", 1)),
    ("retry.backoff.ms", AtLeastAs("retry.backoff.ms", 1)),
    ("sasl.client.callback.handler.class", Refused(JVM)),
    ("sasl.jaas.config", Special(jaas)),
    ("sasl.kerberos.service.name", Refused(KERBEROS)),
    ("sasl.login.callback.handler.class", Refused(JVM)),
    ("sasl.login.class", Refused(JVM)),
    ("sasl.mechanism", Special(sasl_mechanism)),
    ("sasl.oauthbearer.token.endpoint.url", Refused(OAUTH)),
    ("sasl.password", As("sasl.password")),
    ("sasl.username", As("sasl.username")),
    ("security.protocol", Lower("security.protocol")),
    ("security.providers", Refused(JVM)),
    ("send.buffer.bytes", AtLeastAs("socket.send.buffer.bytes", 0)),
    ("socket.connection.setup.timeout.max.ms", Refused(NO_COUNTERPART)),
    ("socket.connection.setup.timeout.ms", As("socket.connection.setup.timeout.ms")),
    ("socket.keepalive.enable", Lower("socket.keepalive.enable")),
    ("ssl.ca.location", As("ssl.ca.location")),
    ("ssl.certificate.location", As("ssl.certificate.location")),
    ("ssl.cipher.suites", Refused("cipher names of Java and OpenSSL differ")),
    ("ssl.enabled.protocols", Refused(NO_COUNTERPART)),
    ("ssl.endpoint.identification.algorithm", Special(endpoint_identification)),
    ("ssl.engine.factory.class", Refused(JVM)),
    ("ssl.key.location", As("ssl.key.location")),
    ("ssl.key.password", As("ssl.key.password")),
    ("ssl.keymanager.algorithm", Refused(JVM)),
    ("ssl.keystore.certificate.chain", As("ssl.certificate.pem")),
    ("ssl.keystore.key", As("ssl.key.pem")),
    ("ssl.keystore.location", Special(keystore)),
    ("ssl.keystore.password", Special(keystore_password)),
    ("ssl.keystore.type", Special(keystore_type)),
    ("ssl.protocol", Refused(NO_COUNTERPART)),
    ("ssl.provider", Refused(JVM)),
    ("ssl.secure.random.implementation", Refused(JVM)),
    ("ssl.trustmanager.algorithm", Refused(JVM)),
    ("ssl.truststore.certificates", As("ssl.ca.pem")),
    ("ssl.truststore.location", Special(truststore)),
    ("ssl.truststore.password", Special(truststore_password)),
    ("ssl.truststore.type", Special(truststore_type)),
];

/// Properties of the producer alone.
const PRODUCER: &[(&str, Rule)] = &[
    ("acks", Forced(&["all", "-1"])),
    ("batch.num.messages", As("batch.num.messages")),
    ("batch.size", AtLeastAs("batch.size", 1)),
    ("buffer.memory", KibibytesAs("queue.buffering.max.kbytes")),
    ("compression.gzip.level", Special(|t, level| t.compression_level("gzip", level))),
    ("compression.lz4.level", Special(|t, level| t.compression_level("lz4", level))),
    ("compression.type", Lower("compression.type")),
    ("compression.zstd.level", Special(|t, level| t.compression_level("zstd", level))),
    ("delivery.timeout.ms", Special(delivery_timeout)),
    ("enable.idempotence", Forced(&["true"])),
    ("interceptor.classes", Refused(JVM)),
    ("key.serializer", Refused(JVM)),
    ("linger.ms", As("linger.ms")),
    ("max.block.ms", Refused(NO_LIMIT)),
    ("max.in.flight.requests.per.connection", As("max.in.flight.requests.per.connection")),
    ("max.request.size", AtLeastAs("message.max.bytes", 1000)),
    ("partitioner", Special(partitioner)),
    ("partitioner.adaptive.partitioning.enable", Refused(NO_COUNTERPART)),
    ("partitioner.availability.timeout.ms", Refused(NO_COUNTERPART)),
    ("partitioner.class", Special(partitioner_class)),
    ("partitioner.ignore.keys", Special(partitioner_ignore_keys)),
    ("queue.buffering.max.kbytes", As("queue.buffering.max.kbytes")),
    ("queue.buffering.max.messages", As("queue.buffering.max.messages")),
    ("sticky.partitioning.linger.ms", As("sticky.partitioning.linger.ms")),
    ("transaction.timeout.ms", AtLeastAs("transaction.timeout.ms", 1000)),
    ("transaction.two.phase.commit.enable", Forced(&["false"])),
    ("transactional.id", Refused(OWN)),
    ("value.serializer", Refused(JVM)),
];

/// Properties of the consumer alone.
const CONSUMER: &[(&str, Rule)] = &[
    ("check.crcs", Lower("check.crcs")),
    ("client.rack", As("client.rack")),
    ("fetch.max.bytes", As("fetch.max.bytes")),
    ("fetch.max.wait.ms", As("fetch.wait.max.ms")),
    ("fetch.min.bytes", As("fetch.min.bytes")),
    ("group.id", Refused(OWN)),
    ("interceptor.classes", Refused(JVM)),
    ("isolation.level", Forced(&["read_committed"])),
    ("key.deserializer", Refused(JVM)),
    ("max.partition.fetch.bytes", As("max.partition.fetch.bytes")),
    ("value.deserializer", Refused(JVM)),
];

struct Translation<'a, 'b> {
    kind: ClientKind,
    given: &'b BTreeMap<&'a str, &'a str>,
    out: BTreeMap<String, String>,
}

impl Translation<'_, '_> {
    fn property(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        let own = match self.kind {
            ClientKind::Producer => PRODUCER,
            ClientKind::Consumer => CONSUMER,
            ClientKind::Admin => &[],
        };
        let rule = own.iter().chain(COMMON).find(|(known, _)| *known == name);
        let Some((_, rule)) = rule else {
            return Err(Code::ConfigUnsupported.fault(format!(
                "'{name}' is not a property that the worker's Kafka client can carry out"
            )));
        };
        match rule {
            As(own) => self.set(own, value),
            Lower(own) => self.set(own, &value.to_ascii_lowercase()),
            KibibytesAs(own) => {
                let bytes = number(name, value)?.max(1024);
                self.set(own, &((bytes + 1023) / 1024).to_string());
            }
            AtLeastAs(own, least) => {
                let number = number(name, value)?.max(*least);
                self.set(own, &number.to_string());
            }
            Forced(allowed) => {
                if !allowed.iter().any(|allowed| value.eq_ignore_ascii_case(allowed)) {
                    let allowed = allowed.first().copied().unwrap_or_default();
                    return Err(Code::ConfigUnsupported.fault(format!(
                        "'{name}' must be '{allowed}': exactly-once delivery depends on it"
                    )));
                }
            }
            Special(apply) => apply(self, value)?,
            Refused(reason) => {
                return Err(
                    Code::ConfigUnsupported.fault(format!("'{name}' is not supported: {reason}"))
                );
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) {
        self.out.insert(name.to_owned(), value.to_owned());
    }

    /// What the user gave for another property, in upper case.
    fn other(&self, name: &str) -> Option<String> {
        self.given.get(name).map(|value| value.to_ascii_uppercase())
    }

    /// Java has a level for each type, the native client one for the type in use.
    fn compression_level(&mut self, compression: &str, level: &str) -> Result<(), Fault> {
        let level = number("compression level", level)?;
        if self.given.get("compression.type").is_some_and(|t| t.eq_ignore_ascii_case(compression)) {
            self.set("compression.level", &level.to_string());
        }
        Ok(())
    }
}

fn number(name: &str, value: &str) -> Result<i64, Fault> {
    value.parse().map_err(|error: std::num::ParseIntError| {
        Code::ConfigInvalid
            .fault(format!("'{name}' must be a whole number, not '{value}'"))
            .caused_by(&error)
    })
}

fn delivery_timeout(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    let wanted = number("delivery.timeout.ms", value)?.max(1);
    // A record cannot outlive its transaction; Java's users set this to the largest number.
    let transaction = t.given.get("transaction.timeout.ms").and_then(|text| text.parse().ok());
    t.set("message.timeout.ms", &wanted.min(transaction.unwrap_or(60_000)).to_string());
    Ok(())
}

const PARTITIONERS: &[&str] = &[
    "random",
    "consistent",
    "consistent_random",
    "murmur2",
    "murmur2_random",
    "fnv1a",
    "fnv1a_random",
];

fn partitioner(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    if !PARTITIONERS.contains(&value) {
        return Err(Code::ConfigInvalid.fault(format!(
            "'partitioner' must be one of {}, not '{value}'",
            PARTITIONERS.join(", ")
        )));
    }
    t.set("partitioner", value);
    Ok(())
}

fn partitioner_class(_: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    // Java's default, under its old name or as null, is ours too.
    let default = "org.apache.kafka.clients.producer.internals.DefaultPartitioner";
    if value.is_empty() || value == "null" || value == default {
        return Ok(());
    }
    Err(Code::ConfigUnsupported
        .fault(format!("'partitioner.class' is not supported: {JVM}"))
        .hint(format!("Use 'partitioner' with one of {}.", PARTITIONERS.join(", "))))
}

fn partitioner_ignore_keys(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    if value.eq_ignore_ascii_case("true") {
        t.set("partitioner", "random");
    }
    Ok(())
}

fn sasl_mechanism(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    let reason = match value.to_ascii_uppercase().as_str() {
        "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" => {
            t.set("sasl.mechanism", &value.to_ascii_uppercase());
            return Ok(());
        }
        "GSSAPI" => KERBEROS,
        "OAUTHBEARER" => OAUTH,
        _ => "it is not known",
    };
    Err(Code::ConfigUnsupported
        .fault(format!("'sasl.mechanism' cannot be '{value}': {reason}"))
        .hint("Use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."))
}

/// `<module> required username="…" password="…";`
fn jaas(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    let malformed = || {
        Code::ConfigInvalid.fault(
            "'sasl.jaas.config' is not of the form <module> required username=\"…\" password=\"…\";",
        )
    };
    let (module, rest) = value.split_once(char::is_whitespace).ok_or_else(malformed)?;
    if !module.ends_with(".PlainLoginModule") && !module.ends_with(".ScramLoginModule") {
        return Err(Code::ConfigUnsupported.fault(
            "'sasl.jaas.config' is supported with PlainLoginModule and ScramLoginModule only",
        ));
    }
    let options = jaas_options(rest).ok_or_else(malformed)?;
    for (option, own) in [("username", "sasl.username"), ("password", "sasl.password")] {
        let value = options.iter().find(|(name, _)| name == option).ok_or_else(malformed)?;
        t.set(own, &value.1);
    }
    Ok(())
}

/// The options of a JAAS entry; a value stands in quotes in which a backslash escapes.
fn jaas_options(text: &str) -> Option<Vec<(String, String)>> {
    let mut chars = text.trim().trim_end_matches(';').chars().peekable();
    let mut options = Vec::new();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Some(options);
        }
        let mut name = String::new();
        while let Some(c) = chars.next_if(|c| *c != '=' && !c.is_whitespace()) {
            name.push(c);
        }
        if chars.next_if_eq(&'=').is_none() {
            // The control flag: required, optional …
            continue;
        }
        let quote = chars.next_if(|c| matches!(c, '"' | '\''));
        let mut value = String::new();
        loop {
            match (chars.next(), quote) {
                (Some('\\'), Some(_)) => value.push(chars.next()?),
                (Some(c), Some(quote)) if c == quote => break,
                (Some(c), None) if c.is_whitespace() => break,
                (Some(c), _) => value.push(c),
                (None, Some(_)) => return None,
                (None, None) => break,
            }
        }
        options.push((name, value));
    }
}

fn endpoint_identification(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    match value.to_ascii_lowercase().as_str() {
        "" | "none" => t.set("ssl.endpoint.identification.algorithm", "none"),
        "https" => t.set("ssl.endpoint.identification.algorithm", "https"),
        _ => {
            return Err(Code::ConfigInvalid.fault(format!(
                "'ssl.endpoint.identification.algorithm' must be 'https' or empty, not '{value}'"
            )));
        }
    }
    Ok(())
}

fn keystore(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    match t.other("ssl.keystore.type").as_deref() {
        Some("PEM") => {
            // One file holds the key and the certificate chain, as Java wants it.
            t.set("ssl.certificate.location", value);
            t.set("ssl.key.location", value);
        }
        Some("PKCS12") => t.set("ssl.keystore.location", value),
        _ => return Err(java_store("ssl.keystore.location", "ssl.keystore.type", "PEM or PKCS12")),
    }
    Ok(())
}

fn keystore_password(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    match t.other("ssl.keystore.type").as_deref() {
        Some("PKCS12") => t.set("ssl.keystore.password", value),
        _ => return Err(java_store("ssl.keystore.password", "ssl.keystore.type", "PKCS12")),
    }
    Ok(())
}

fn keystore_type(_: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    match value.to_ascii_uppercase().as_str() {
        "PEM" | "PKCS12" => Ok(()),
        _ => Err(java_store("ssl.keystore.type", "ssl.keystore.type", "PEM or PKCS12")),
    }
}

fn truststore(t: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    if t.other("ssl.truststore.type").as_deref() != Some("PEM") {
        return Err(java_store("ssl.truststore.location", "ssl.truststore.type", "PEM"));
    }
    t.set("ssl.ca.location", value);
    Ok(())
}

fn truststore_password(_: &mut Translation<'_, '_>, _: &str) -> Result<(), Fault> {
    Err(java_store("ssl.truststore.password", "ssl.truststore.type", "PEM"))
}

fn truststore_type(_: &mut Translation<'_, '_>, value: &str) -> Result<(), Fault> {
    match value.to_ascii_uppercase().as_str() {
        "PEM" => Ok(()),
        _ => Err(java_store("ssl.truststore.type", "ssl.truststore.type", "PEM")),
    }
}

fn java_store(name: &str, type_key: &str, types: &str) -> Fault {
    Code::ConfigUnsupported
        .fault(format!("'{name}' is supported only with {type_key}={types}"))
        .hint(format!("Convert the store; {STORES}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: ClientKind, given: &[(&str, &str)], expect: &[(&str, &str)]) {
        let properties = ClientProperties::translate(kind, given.iter().copied()).unwrap();
        assert_eq!(properties.iter().collect::<Vec<_>>(), expect);
    }

    #[track_caller]
    fn refused(kind: ClientKind, name: &str, value: &str, code: Code) {
        let faults = ClientProperties::translate(kind, [(name, value)]).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        let fault = faults.first().unwrap();
        assert_eq!((fault.name.as_str(), fault.fault.code()), (name, code), "{}", fault.fault);
        assert!(fault.fault.message().contains(name), "{}", fault.fault);
    }

    use ClientKind::{Admin, Consumer, Producer};
    use Code::{ConfigInvalid, ConfigUnsupported};

    #[test]
    fn javas_names_become_the_clients_names() {
        check(Producer, &[("max.request.size", "2097152")], &[("message.max.bytes", "2097152")]);
        check(
            Producer,
            &[("buffer.memory", "33554433")],
            &[("queue.buffering.max.kbytes", "32769")],
        );
        check(Producer, &[("batch.size", "0")], &[("batch.size", "1")]);
        check(Producer, &[("acks", "-1"), ("enable.idempotence", "TRUE")], &[]);
        check(Producer, &[("request.timeout.ms", "30000")], &[("socket.timeout.ms", "30000")]);
        check(Producer, &[("send.buffer.bytes", "-1")], &[("socket.send.buffer.bytes", "0")]);
        check(Admin, &[("security.protocol", "SASL_SSL")], &[("security.protocol", "sasl_ssl")]);
        check(Consumer, &[("fetch.max.wait.ms", "100")], &[("fetch.wait.max.ms", "100")]);
        check(Producer, &[("linger.ms", "5"), ("linger.ms", "7")], &[("linger.ms", "7")]);
    }

    #[test]
    fn a_record_does_not_outlive_its_transaction() {
        let timeout = ("delivery.timeout.ms", "2147483647");
        check(Producer, &[timeout], &[("message.timeout.ms", "60000")]);
        check(
            Producer,
            &[timeout, ("transaction.timeout.ms", "300000")],
            &[("message.timeout.ms", "300000"), ("transaction.timeout.ms", "300000")],
        );
    }

    #[test]
    fn the_level_of_the_compression_in_use_counts() {
        check(
            Producer,
            &[
                ("compression.gzip.level", "9"),
                ("compression.type", "ZSTD"),
                ("compression.zstd.level", "3"),
            ],
            &[("compression.level", "3"), ("compression.type", "zstd")],
        );
    }

    #[test]
    fn jaas_entries_become_user_and_password() {
        let plain = r#"org.apache.kafka.common.security.plain.PlainLoginModule required username="al\"ice" password='x y=;"z';"#;
        check(
            Producer,
            &[("sasl.jaas.config", plain), ("sasl.mechanism", "plain")],
            &[
                ("sasl.mechanism", "PLAIN"),
                ("sasl.password", "x y=;\"z"),
                ("sasl.username", "al\"ice"),
            ],
        );
        let scram = "org.apache.kafka.common.security.scram.ScramLoginModule required username=a password=b;";
        check(
            Admin,
            &[("sasl.jaas.config", scram)],
            &[("sasl.password", "b"), ("sasl.username", "a")],
        );
        let kerberos = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;";
        refused(Admin, "sasl.jaas.config", kerberos, ConfigUnsupported);
        refused(
            Admin,
            "sasl.jaas.config",
            "x.PlainLoginModule required username=\"a",
            ConfigInvalid,
        );
        refused(
            Admin,
            "sasl.jaas.config",
            "x.PlainLoginModule required username=a;",
            ConfigInvalid,
        );
        refused(Admin, "sasl.jaas.config", "", ConfigInvalid);
    }

    #[test]
    fn pem_stores_are_taken_and_java_stores_refused() {
        check(
            Producer,
            &[("ssl.keystore.type", "PEM"), ("ssl.keystore.location", "/k.pem")],
            &[("ssl.certificate.location", "/k.pem"), ("ssl.key.location", "/k.pem")],
        );
        check(
            Producer,
            &[
                ("ssl.keystore.location", "/k.p12"),
                ("ssl.keystore.password", "p"),
                ("ssl.keystore.type", "PKCS12"),
                ("ssl.truststore.location", "/ca.pem"),
                ("ssl.truststore.type", "pem"),
            ],
            &[
                ("ssl.ca.location", "/ca.pem"),
                ("ssl.keystore.location", "/k.p12"),
                ("ssl.keystore.password", "p"),
            ],
        );
        check(
            Producer,
            &[("ssl.endpoint.identification.algorithm", "")],
            &[("ssl.endpoint.identification.algorithm", "none")],
        );
        refused(Producer, "ssl.truststore.location", "/t.jks", ConfigUnsupported);
        refused(Producer, "ssl.keystore.location", "/k.jks", ConfigUnsupported);
        refused(Producer, "ssl.keystore.type", "JKS", ConfigUnsupported);
        refused(Producer, "ssl.truststore.type", "JKS", ConfigUnsupported);
    }

    #[test]
    fn what_is_not_carried_out_is_refused_by_name() {
        refused(Producer, "acks", "1", ConfigUnsupported);
        refused(Producer, "enable.idempotence", "false", ConfigUnsupported);
        refused(Producer, "transactional.id", "mine", ConfigUnsupported);
        refused(Producer, "interceptor.classes", "x.Y", ConfigUnsupported);
        refused(Producer, "partitioner.class", "x.Y", ConfigUnsupported);
        refused(Producer, "partitioner", "best", ConfigInvalid);
        refused(Producer, "no.such.property", "1", ConfigUnsupported);
        refused(Producer, "isolation.level", "read_committed", ConfigUnsupported);
        refused(Producer, "max.request.size", "1MB", ConfigInvalid);
        refused(Consumer, "isolation.level", "read_uncommitted", ConfigUnsupported);
        refused(Consumer, "linger.ms", "5", ConfigUnsupported);
        refused(Admin, "sasl.mechanism", "GSSAPI", ConfigUnsupported);
    }

    #[test]
    fn secrets_are_not_printed() {
        let given =
            [("sasl.password", "S3cret"), ("ssl.keystore.key", "S3cret"), ("client.id", "c")];
        let properties = ClientProperties::translate(Producer, given).unwrap();
        let printed = format!("{properties:?}");
        assert!(!printed.contains("S3cret") && printed.contains("client.id"), "{printed}");
    }
}
