//! What a stage asks of the outside: schema ids and topics. The worker answers from registry and
//! broker, tests from memory.

use std::future::Future;

use crate::error::Fault;
use crate::kafka::TopicFacts;
use crate::record::Side;

/// The outside, as far as a stage needs it.
pub trait Services: Send {
    /// The id under which a schema is known to the registry.
    fn schema_id(
        &mut self,
        topic: &str,
        side: Side,
        text: &str,
    ) -> impl Future<Output = Result<u32, Fault>> + Send;

    /// Says what will be asked next: a topic, and the schemas of its records. Who can, finds all of
    /// it out at the same time and keeps the answers.
    fn foresee(
        &mut self,
        _topic: &str,
        _schemas: &[(Side, String)],
    ) -> impl Future<Output = Result<(), Fault>> + Send {
        async { Ok(()) }
    }

    /// Sees to a topic and says what is known of it.
    fn topic(&mut self, name: &str) -> impl Future<Output = Result<TopicFacts, Fault>> + Send;
}
