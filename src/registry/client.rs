//! Asks the registry, again and again if need be, and remembers the answers.
//!
//! One request at a time for each schema. Attempts go to the addresses in order; after the last one
//! there is a pause that doubles and varies, so that many tasks do not come back in one moment. Knows
//! nothing of what an id is for.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use schema_registry_converter::async_impl::schema_registry::{
    SrSettings, get_schema_by_id, get_schema_by_subject_and_version, perform_sr_call, post_schema,
};
use schema_registry_converter::error::SRCError;
use schema_registry_converter::schema_registry_common::{
    RegisteredSchema, SchemaType, SrCall, SuppliedSchema,
};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

use super::essence;
use super::outcome::{Outcome, judge};
use super::settings::{Address, Authentication, Lookup, Settings};
use crate::error::{Code, Fault};
use crate::observe::{RegistryMetrics, RegistryOutcome};

/// A registry. Clones share one cache.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    settings: Settings,
    endpoints: Vec<(Address, SrSettings)>,
    ids: Mutex<HashMap<IdKey, Arc<OnceCell<u32>>>>,
    texts: Mutex<HashMap<u32, Arc<str>>>,
    waiters: AtomicUsize,
    waiting: watch::Sender<Option<Waiting>>,
    metrics: Arc<RegistryMetrics>,
}

/// A subject and the SHA-256 of a schema's text.
type IdKey = (String, [u8; 32]);

/// A registry is asked again because it did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Failed attempts so far.
    pub attempts: u32,
    /// What it is asked for.
    pub what: String,
    /// What happened last.
    pub cause: String,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client's own settings would print addresses with their passwords.
        f.debug_tuple("Registry").field(&self.0.settings).finish()
    }
}

impl Registry {
    /// Prepares clients; connects to nothing yet.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] if there is no address or none that a client can be made for.
    pub fn new(settings: Settings) -> Result<Self, Fault> {
        Self::counting(settings, Arc::default())
    }

    /// The same, and counts its requests.
    ///
    /// # Errors
    /// As for [`Registry::new`].
    pub fn counting(settings: Settings, metrics: Arc<RegistryMetrics>) -> Result<Self, Fault> {
        if settings.addresses.is_empty() {
            return Err(Code::ConfigInvalid.fault("the Avro converter needs schema.registry.url"));
        }
        let endpoints = settings
            .addresses
            .iter()
            .map(|address| Ok((address.clone(), endpoint(address, &settings)?)))
            .collect::<Result<_, Fault>>()?;
        Ok(Self(Arc::new(Inner {
            settings,
            endpoints,
            ids: Mutex::default(),
            texts: Mutex::default(),
            waiters: AtomicUsize::new(0),
            waiting: watch::Sender::new(None),
            metrics,
        })))
    }

    /// Whether requests wait for a registry that does not answer, and why.
    pub fn waiting(&self) -> watch::Receiver<Option<Waiting>> {
        self.0.waiting.subscribe()
    }

    /// The subject of one half (`key`, `value`) of a topic's records.
    ///
    /// # Errors
    /// The schema has none under the strategy that is set.
    pub fn subject(&self, topic: &str, half: &str, schema_text: &str) -> Result<String, Fault> {
        self.0.settings.naming.subject(topic, half, schema_text)
    }

    /// The id of an Avro schema under a subject; registers it if the registry does not know it and
    /// that is wanted.
    ///
    /// # Errors
    /// [`Code::SchemaIncompatible`], [`Code::SchemaInvalid`], [`Code::RegistryRefused`],
    /// [`Code::SchemaNotRegistered`] at once; [`Code::RegistryUnreachable`] after the time for
    /// attempts.
    pub async fn id(&self, subject: &str, schema_text: &str) -> Result<u32, Fault> {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, schema_text.as_bytes()).as_ref());
        let cell = {
            let mut ids = self.0.ids.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(ids.entry((subject.to_owned(), hash)).or_default())
        };
        let id = cell.get_or_try_init(|| self.find_id(subject, schema_text));
        id.await.copied()
    }

    async fn find_id(&self, subject: &str, schema_text: &str) -> Result<u32, Fault> {
        let request = match self.0.settings.lookup {
            Lookup::Register => Request::Register { subject, schema_text },
            Lookup::Exact => Request::Find { subject, schema_text },
            Lookup::Latest => Request::Latest { subject },
        };
        let found = self.ask(request).await.map_err(|fault| match fault.code() {
            Code::SchemaNotRegistered => {
                fault.hint(to_be_registered("Register it there", schema_text))
            }
            _ => fault,
        })?;
        if self.0.settings.lookup == Lookup::Latest {
            judge_latest(subject, schema_text, &found)?;
        }
        let told = if request.is_lookup() { "schema found" } else { "schema registered" };
        tracing::info!(subject, id = found.id, "{told}");
        Ok(found.id)
    }

    /// The text of the Avro schema with this id.
    ///
    /// # Errors
    /// [`Code::RegistryRefused`] if there is no such schema or it is not Avro on its own;
    /// [`Code::RegistryUnreachable`] after the time for attempts.
    pub async fn fetch_schema(&self, id: u32) -> Result<Arc<str>, Fault> {
        let known = |texts: &Mutex<HashMap<_, Arc<str>>>| {
            texts.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
        };
        if let Some(text) = known(&self.0.texts) {
            return Ok(text);
        }
        let request = Request::Fetch(id);
        let schema = self.ask(request).await?;
        if !schema.is_plain_avro {
            return Err(Code::RegistryRefused
                .fault(format!("{request} is not an Avro schema on its own"))
                .hint("Read the topic with a client of that format."));
        }
        let text = Arc::<str>::from(schema.schema);
        let mut texts = self.0.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.insert(id, Arc::clone(&text));
        Ok(text)
    }

    /// Sees that a registry answers and lets us in, by asking for a schema that need not exist.
    ///
    /// # Errors
    /// [`Code::RegistryUnreachable`] at the first failure; [`Code::RegistryRefused`].
    pub async fn check(&self) -> Result<(), Fault> {
        let request = Request::Fetch(1);
        match self.attempt(request, "a first question").await {
            Ok(_) => Ok(()),
            // it has no such schema, so it is a registry
            Err(Outcome::Refused(fault)) if fault.message().contains("(HTTP 404") => Ok(()),
            Err(Outcome::Refused(fault)) => Err(fault),
            Err(Outcome::Again(cause)) => {
                Err(Code::RegistryUnreachable
                    .fault(format!("no answer from the registry: {cause}")))
            }
        }
    }

    /// Sends a request until there is an answer, a refusal, or no time left.
    async fn ask(&self, request: Request<'_>) -> Result<Answer, Fault> {
        let what = request.to_string();
        let settings = &self.0.settings;
        let deadline = settings.retry_for.map(|time| Instant::now() + time);
        let mut delay = settings.first_delay;
        let mut patience: Option<Patience<'_>> = None;
        for attempts in 1.. {
            let cause = match self.attempt(request, &what).await {
                Ok(answer) => return Ok(answer),
                Err(Outcome::Refused(fault)) => return Err(fault),
                Err(Outcome::Again(cause)) => cause,
            };
            let pause = vary(delay);
            if deadline.is_some_and(|deadline| Instant::now() + pause >= deadline) {
                let time = settings.retry_for.unwrap_or_default().as_secs();
                return Err(Code::RegistryUnreachable.fault(format!(
                    "no answer from the registry for {what} in {attempts} attempts within {time} s: {cause}"
                )));
            }
            let milliseconds = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(attempts, milliseconds, what, cause, "waiting for the schema registry");
            patience.get_or_insert_with(|| Patience::new(&self.0)).show(attempts, &what, cause);
            tokio::time::sleep(pause).await;
            self.0.metrics.retry();
            delay = (delay * 2).min(settings.longest_delay);
        }
        Err(Code::RegistryUnreachable.fault(format!("no answer from the registry for {what}")))
    }

    /// Asks one address after the other; a definite answer ends it, whichever gives it.
    async fn attempt(&self, request: Request<'_>, what: &str) -> Result<Answer, Outcome> {
        let mut causes = Vec::new();
        for (address, endpoint) in &self.0.endpoints {
            let began = Instant::now();
            let answer = request
                .send(endpoint)
                .await
                .map_err(|error| judge(&error, what, request.is_lookup()));
            let outcome = match &answer {
                Ok(_) => RegistryOutcome::Answered,
                Err(Outcome::Refused(_)) => RegistryOutcome::Refused,
                Err(Outcome::Again(_)) => RegistryOutcome::Failed,
            };
            self.0.metrics.request(outcome, began.elapsed());
            match answer {
                Err(Outcome::Again(cause)) => causes.push(format!("{address}: {cause}")),
                settled => return settled,
            }
        }
        Err(Outcome::Again(causes.join("; ")))
    }
}

/// What a registry answers.
struct Answer {
    id: u32,
    schema: String,
    /// It is Avro, and refers to no other subject.
    is_plain_avro: bool,
}

impl From<RegisteredSchema> for Answer {
    fn from(known: RegisteredSchema) -> Self {
        let is_plain_avro = known.schema_type == SchemaType::Avro && known.references.is_empty();
        Self { id: known.id, schema: known.schema, is_plain_avro }
    }
}

/// What a registry is asked. Prints as the object of a sentence.
#[derive(Clone, Copy)]
enum Request<'a> {
    Register { subject: &'a str, schema_text: &'a str },
    Find { subject: &'a str, schema_text: &'a str },
    Latest { subject: &'a str },
    Fetch(u32),
}

impl Request<'_> {
    async fn send(self, endpoint: &SrSettings) -> Result<Answer, SRCError> {
        match self {
            Self::Register { subject, schema_text } => {
                let schema = SuppliedSchema::new(None, SchemaType::Avro, schema_text.to_owned());
                post_schema(endpoint, subject.to_owned(), schema).await.map(Answer::from)
            }
            Self::Find { subject, schema_text } => find(endpoint, subject, schema_text).await,
            Self::Latest { subject } => {
                get_schema_by_subject_and_version(endpoint, subject, None).await.map(Answer::from)
            }
            Self::Fetch(id) => get_schema_by_id(id, endpoint).await.map(Answer::from),
        }
    }

    /// Whether a schema is looked for that somebody else has to register.
    const fn is_lookup(self) -> bool {
        matches!(self, Self::Find { .. } | Self::Latest { .. })
    }
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register { subject, .. } | Self::Find { subject, .. } => {
                write!(f, "the schema for subject '{subject}'")
            }
            Self::Latest { subject } => {
                write!(f, "the latest version of the schema for subject '{subject}'")
            }
            Self::Fetch(id) => write!(f, "the schema with id {id}"),
        }
    }
}

/// Asks for a schema that the subject has, and registers nothing: POST /subjects/(string: subject)
/// of Confluent's API.
async fn find(endpoint: &SrSettings, subject: &str, schema_text: &str) -> Result<Answer, SRCError> {
    let body = serde_json::json!({ "schema": schema_text, "schemaType": "AVRO" }).to_string();
    let found = perform_sr_call(endpoint, SrCall::PostForVersion(subject, &body)).await?;
    let missing = || SRCError::non_retryable_without_cause("the answer has no id");
    let id = found.id.ok_or_else(missing)?;
    Ok(Answer { id, schema: schema_text.to_owned(), is_plain_avro: true })
}

/// Refuses a latest version by which a reader would see something else than was written.
fn judge_latest(subject: &str, own: &str, latest: &Answer) -> Result<(), Fault> {
    let place = if latest.is_plain_avro {
        match essence::compare(own, &latest.schema) {
            Ok(()) => return Ok(()),
            Err(place) => place,
        }
    } else {
        "it is not an Avro schema on its own".to_owned()
    };
    Err(Code::SchemaNotRegistered
        .fault(format!(
            "the latest version of subject '{subject}' (id {}) is another schema than the record's, \
             so it cannot stand for it: {place}",
            latest.id
        ))
        .hint(to_be_registered("Register a version by which the same bytes are read", own)))
}

/// What to do about a schema that has to be in the registry, with its text.
fn to_be_registered(what: &str, schema_text: &str) -> String {
    format!(
        "{what} (POST /subjects/…/versions) and restart the connector, or set \
         auto.register.schemas=true. The schema: {schema_text}"
    )
}

/// A client for one address. The library would go on to the next address after a definite refusal
/// too, so it is given one each.
fn endpoint(address: &Address, settings: &Settings) -> Result<SrSettings, Fault> {
    let mut builder = SrSettings::new_builder(address.reveal(&settings.authentication));
    // Settings come from the configuration alone, not from the environment.
    builder.no_proxy().set_timeout(settings.request_timeout);
    match &settings.authentication {
        Authentication::Address => {}
        Authentication::Basic { user, password } => {
            builder.set_basic_authorization(user, Some(password.reveal()));
        }
        Authentication::Bearer(token) => {
            builder.set_token_authorization(token.reveal());
        }
    }
    builder.build().map_err(|error| {
        Code::ConfigInvalid
            .fault(format!("no client for the registry at {address}"))
            .caused_by(&error)
    })
}

/// Between half of the delay and all of it.
fn vary(delay: Duration) -> Duration {
    // A hasher's random key is all the chance that is needed here.
    let [share, ..] = RandomState::new().hash_one(0_u8).to_le_bytes();
    delay / 2 + delay / 2 * u32::from(share) / 255
}

/// Shows that a request waits, for as long as it lives.
struct Patience<'a>(&'a Inner);

impl<'a> Patience<'a> {
    fn new(registry: &'a Inner) -> Self {
        registry.waiters.fetch_add(1, Ordering::AcqRel);
        Self(registry)
    }

    fn show(&self, attempts: u32, what: &str, cause: String) {
        let what = what.to_owned();
        self.0.waiting.send_replace(Some(Waiting { attempts, what, cause }));
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        if self.0.waiters.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.waiting.send_replace(None);
        }
    }
}
