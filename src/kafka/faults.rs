//! The Kafka client's errors → coded faults.
//!
//! One table decides what an error code means for the task; whoever met the error says what was
//! attempted. **Invariant:** what is not known to be definite becomes the caller's fallback, which
//! is retried.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Kafka};

use crate::error::{Code, Fault};

/// The code of a definite error; `None` for an error that may heal or says nothing.
pub(super) const fn definite(error: Kafka) -> Option<Code> {
    match error {
        Kafka::Fenced | Kafka::ProducerFenced | Kafka::InvalidProducerEpoch => {
            Some(Code::KafkaFenced)
        }
        Kafka::TopicAuthorizationFailed
        | Kafka::GroupAuthorizationFailed
        | Kafka::ClusterAuthorizationFailed
        | Kafka::TransactionalIdAuthorizationFailed => Some(Code::KafkaAuthorization),
        Kafka::Authentication
        | Kafka::SaslAuthenticationFailed
        | Kafka::UnsupportedSASLMechanism
        | Kafka::IllegalSASLState
        | Kafka::SecurityDisabled => Some(Code::KafkaAuthentication),
        Kafka::UnknownTopic | Kafka::UnknownTopicOrPartition => Some(Code::TopicMissing),
        Kafka::MessageSizeTooLarge | Kafka::MessageBatchTooLarge | Kafka::InvalidMessageSize => {
            Some(Code::RecordTooLarge)
        }
        // A compacted topic refuses a record without a key with this code (KIP-467).
        Kafka::InvalidRecord => Some(Code::TopicCompacted),
        Kafka::InvalidTransactionTimeout => Some(Code::ConfigInvalid),
        // The name itself is not legal.
        Kafka::InvalidTopic => Some(Code::TopicCreation),
        _ => None,
    }
}

/// The code in an error, whichever call it came from.
pub(super) fn code_of(error: &KafkaError) -> Option<Kafka> {
    match error {
        KafkaError::AdminOp(code) => Some(*code),
        other => other.rdkafka_error_code(),
    }
}

/// A fault for an error of the client.
pub(super) fn fault(error: &KafkaError, attempted: &str, fallback: Code) -> Fault {
    let code = code_of(error).and_then(definite).unwrap_or(fallback);
    code.fault(attempted).caused_by(error)
}

/// A fault for a client that cannot be made: a configuration that it does not take, or a machine
/// that does not let it start.
pub fn client_refused(error: &KafkaError, client: &str) -> Fault {
    let reason = match error {
        // The client's own words would quote the value.
        KafkaError::ClientConfig(_, _, key, _) => {
            return Code::ConfigInvalid
                .fault(format!("the {client} does not take the value of '{key}'"));
        }
        KafkaError::ClientCreation(reason) => reason.clone(),
        other => other.to_string(),
    };
    let code = if wants_a_thread(&reason) { Code::KafkaClient } else { Code::ConfigInvalid };
    code.fault(format!("the {client} cannot be made: {reason}"))
}

/// Whether the client's threads did not come up (librdkafka, `rd_kafka_new`): "Failed to create
/// thread: …", "Timed out waiting for 1 background thread(s) to initialize". Of everything that
/// fails there, these alone are not settings; a code does not come with them.
fn wants_a_thread(reason: &str) -> bool {
    reason.contains("background thread") || reason.starts_with("Failed to create thread")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::error::KafkaError::{AdminOp, ClientConfig, MessageProduction, NoMessageReceived};
    use rdkafka::types::RDKafkaConfRes;

    #[track_caller]
    fn check(error: &KafkaError, expect: Code) {
        let fault = fault(error, "tried", Code::KafkaTransaction);
        assert_eq!(fault.code(), expect, "{fault}");
    }

    #[test]
    fn definite_errors_have_their_code_and_others_the_fallback() {
        check(&MessageProduction(Kafka::MessageSizeTooLarge), Code::RecordTooLarge);
        check(&MessageProduction(Kafka::Fenced), Code::KafkaFenced);
        check(&AdminOp(Kafka::TopicAuthorizationFailed), Code::KafkaAuthorization);
        check(&AdminOp(Kafka::RequestTimedOut), Code::KafkaTransaction);
        check(&NoMessageReceived, Code::KafkaTransaction);
    }

    #[test]
    fn a_machine_that_does_not_let_the_client_start_is_no_fault_of_its_settings() {
        #[track_caller]
        fn check(reason: &str, expect: Code) {
            let fault = client_refused(&KafkaError::ClientCreation(reason.into()), "consumer");
            assert_eq!(fault.code(), expect, "{fault}");
            assert!(fault.message().contains(reason), "{fault}");
        }
        check("Timed out waiting for 1 background thread(s) to initialize", Code::KafkaClient);
        check("Failed to create background thread: Resource", Code::KafkaClient);
        check("Failed to create thread: Resource temporarily unavailable (11)", Code::KafkaClient);
        check("ssl.key.location: no such file", Code::ConfigInvalid);
        assert_eq!(Code::KafkaClient.fate(), crate::error::Fate::Retry);
    }

    #[test]
    fn a_refused_value_is_not_quoted() {
        let error = ClientConfig(
            RDKafkaConfRes::RD_KAFKA_CONF_INVALID,
            "Invalid value \"S3cret\"".into(),
            "ssl.key.pem".into(),
            "S3cret".into(),
        );
        let text = client_refused(&error, "producer").to_string();
        assert!(text.contains("ssl.key.pem") && !text.contains("S3cret"), "{text}");
    }
}
