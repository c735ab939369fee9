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

/// A fault for a configuration that the client does not take.
pub(super) fn client_refused(error: &KafkaError, client: &str) -> Fault {
    let reason = match error {
        // The client's own words would quote the value.
        KafkaError::ClientConfig(_, _, key, _) => {
            return Code::ConfigInvalid
                .fault(format!("the {client} does not take the value of '{key}'"));
        }
        KafkaError::ClientCreation(reason) => reason.clone(),
        other => other.to_string(),
    };
    Code::ConfigInvalid.fault(format!("the {client} cannot be made: {reason}"))
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
