//! What a stage asks of the outside, answered by the schema registries and the brokers.

use std::sync::Arc;

use crate::config::ConverterSettings;
use crate::error::{Code, Fault};
use crate::kafka::{TopicFacts, Topics};
use crate::observe::RegistryMetrics;
use crate::registry::Registry;
use crate::stage::{Services, Side};

/// The registries of a connector's two converters; one client if both are the same.
#[derive(Clone, Debug)]
pub(super) struct Registries {
    key: Option<Registry>,
    value: Option<Registry>,
}

impl Registries {
    /// Makes the clients; nothing is asked yet.
    pub(super) fn new(
        key: &ConverterSettings,
        value: &ConverterSettings,
        metrics: &Arc<RegistryMetrics>,
    ) -> Result<Self, Fault> {
        let open = |settings: &ConverterSettings| {
            let open = |registry| Registry::counting(registry, Arc::clone(metrics));
            settings.registry.clone().map(open).transpose()
        };
        let key_registry = open(key)?;
        let same = key.registry == value.registry;
        let value_registry = if same { key_registry.clone() } else { open(value)? };
        Ok(Self { key: key_registry, value: value_registry })
    }

    /// The clients that are in use.
    pub(super) fn all(&self) -> impl Iterator<Item = &Registry> {
        self.key.iter().chain(&self.value)
    }

    fn of(&self, side: Side) -> Result<&Registry, Fault> {
        let registry = match side {
            Side::Key => &self.key,
            Side::Value => &self.value,
        };
        registry.as_ref().ok_or_else(|| Code::Internal.fault("a converter without its registry"))
    }
}

/// The services of a running task.
#[derive(Debug)]
pub(super) struct LiveServices {
    pub(super) registries: Registries,
    pub(super) topics: Arc<Topics>,
    /// What is known of a topic that will be asked for next.
    foreseen: Option<(String, TopicFacts)>,
}

impl LiveServices {
    /// Nothing is asked yet.
    pub(super) const fn new(registries: Registries, topics: Arc<Topics>) -> Self {
        Self { registries, topics, foreseen: None }
    }
}

impl Registries {
    /// The registry's client remembers what it was told.
    async fn id(&self, topic: &str, side: Side, text: &str) -> Result<u32, Fault> {
        let registry = self.of(side)?;
        let subject = registry.subject(topic, side.as_str(), text)?;
        registry.id(&subject, text).await
    }

    async fn first_id(
        &self,
        topic: &str,
        side: Side,
        schemas: &[(Side, String)],
    ) -> Result<(), Fault> {
        match schemas.iter().find(|(own, _)| *own == side) {
            Some((_, text)) => self.id(topic, side, text).await.map(drop),
            None => Ok(()),
        }
    }
}

impl Services for LiveServices {
    async fn schema_id(&mut self, topic: &str, side: Side, text: &str) -> Result<u32, Fault> {
        self.registries.id(topic, side, text).await
    }

    async fn foresee(&mut self, topic: &str, schemas: &[(Side, String)]) -> Result<(), Fault> {
        let (facts, ..) = tokio::try_join!(
            self.topics.ensure(topic),
            self.registries.first_id(topic, Side::Key, schemas),
            self.registries.first_id(topic, Side::Value, schemas),
        )?;
        self.foreseen = Some((topic.to_owned(), facts));
        Ok(())
    }

    async fn topic(&mut self, name: &str) -> Result<TopicFacts, Fault> {
        match self.foreseen.take() {
            Some((topic, facts)) if topic == name => Ok(facts),
            _ => self.topics.ensure(name).await,
        }
    }
}
