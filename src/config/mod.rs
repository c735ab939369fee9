//! Strings → typed settings, once, from one definition per key.
//!
//! The order of the files is the way of a configuration: read, resolved, looked up, checked, typed.
//! Knows the layers' settings and none of their work. **Invariant:** all faults are reported, not
//! the first; no secret is shown; nothing is accepted and ignored.

mod properties;
mod providers;
mod list;
mod notices;
mod key;
mod catalogue;
mod fault;
mod values;
pub mod keys;
mod listener;
mod secret;
mod layer;
mod converter;
mod worker;
mod topics;
mod transforms;
mod columns;
mod connector;
mod infos;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transform_tests;

pub use catalogue::{Catalogue, Table, nearest};
pub use connector::{
    ConnectorConfig, RetrySettings, TypedConnector, catalogue as connector_catalogue, find_class,
};
pub use converter::{ConverterChoice, ConverterSettings, Side};
pub use fault::{ConfigFault, summarize};
pub use infos::{ConfigInfo, ConfigValue, Definition, Validation, definitions, validate};
pub use key::{Choice, Importance, KeyDef, Kind, Presence, Rejection, Rule, Status, parse_boolean};
pub use keys::plug_ins;
pub use layer::Layer;
pub use list::{parse_patterns, split_list};
pub use listener::Listener;
pub use properties::{PropertiesError, parse as parse_properties};
pub use providers::{Environment, ProviderKind, Providers, process_environment};
pub use secret::Secret;
pub use values::{ConfigNote, Values};
pub use worker::{ClientLayers, TopicTracking, WorkerConfig, catalogue as worker_catalogue};
