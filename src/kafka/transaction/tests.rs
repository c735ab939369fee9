//! The producer against librdkafka's mock cluster: what each refusal becomes, and when it is met.
//!
//! The mock does not isolate transactions; what readers see is tested on a real broker.

use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use super::*;
use crate::kafka::properties::{ClientKind, ClientProperties};
use crate::kafka::settings::{BoundarySettings, InternalTopic, TopicCreation};
use crate::record::{Record, TopicId};

struct Bench {
    cluster: MockCluster<'static, DefaultProducerContext>,
    settings: KafkaSettings,
    list: TopicList,
    stop: Arc<AtomicBool>,
    metrics: Arc<PublisherMetrics>,
}

impl Bench {
    fn new(producer: &[(&str, &str)]) -> Self {
        let cluster = MockCluster::new(1).unwrap();
        for topic in ["t", "offsets", "states"] {
            cluster.create_topic(topic, 1, 1).unwrap();
        }
        let servers = cluster.bootstrap_servers();
        let properties = |kind, more: &[(&str, &str)]| {
            let all = [("bootstrap.servers", servers.as_str())];
            ClientProperties::translate(kind, all.iter().chain(more).copied()).unwrap()
        };
        let settings = KafkaSettings {
            producer: properties(ClientKind::Producer, producer),
            consumer: properties(ClientKind::Consumer, &[]),
            admin: properties(ClientKind::Admin, &[]),
            connector: "c".into(),
            source_partition: "srv".into(),
            transactional_id: "g-c-0".into(),
            offsets_topic: InternalTopic::new("offsets"),
            states_topic: InternalTopic::new("states"),
            boundaries: BoundarySettings::default(),
            topic_creation: TopicCreation::default(),
            request_timeout: Duration::from_secs(10),
        };
        let list = TopicList::new();
        list.id("t");
        Self { cluster, settings, list, stop: Arc::default(), metrics: Arc::default() }
    }

    fn open(&self) -> Result<Transactions, Fault> {
        let place = StoragePlace::new(&self.settings, 1, 1);
        let (stop, metrics) = (Arc::clone(&self.stop), Arc::clone(&self.metrics));
        Transactions::open(&self.settings, self.list.clone(), place, stop, metrics)
    }

    /// Begins a transaction with one record in it.
    fn begun(&self) -> Transactions {
        let mut transactions = self.open().unwrap();
        transactions.begin().unwrap();
        transactions.produce(&batch(100)).unwrap();
        transactions
    }

    fn fail(&self, request: RDKafkaApiKey, errors: &[RDKafkaRespErr]) {
        self.cluster.request_errors(request, errors);
    }
}

fn batch(size: usize) -> Batch {
    let mut batch = Batch::new();
    let value = Some(batch.append(&vec![b'x'; size]));
    let topic = TopicId(0);
    batch.push(Record {
        topic,
        partition: None,
        key: None,
        value,
        headers: 0..0,
        sequence: 0,
        part: 0,
    });
    batch
}

fn offset() -> OffsetRecord {
    OffsetRecord(Arc::from(&b"1"[..]))
}

use RDKafkaApiKey as Api;
use RDKafkaRespErr as Reply;

/// An error of this request, met by the commit, becomes this code.
#[track_caller]
fn check(request: Api, error: Reply, expect: Result<(), Code>) {
    let bench = Bench::new(&[]);
    let mut transactions = bench.open().unwrap();
    bench.fail(request, &[error]);
    transactions.begin().unwrap();
    // Handing a record over says nothing about its fate …
    transactions.produce(&batch(100)).unwrap();
    // … the commit does, before it asks for the end of the transaction.
    let outcome = transactions.commit(&offset());
    let code = outcome.as_ref().map_err(Fault::code).copied();
    assert_eq!(code, expect, "{request:?} {error:?}: {outcome:?}");
    if let Err(fault) = outcome
        && request == Api::Produce
    {
        assert!(fault.to_string().contains("topic '"), "{fault}");
    }
    assert_eq!(bench.metrics.transactions_committed(), u64::from(expect.is_ok()));
}

#[test]
fn a_refused_record_fails_the_commit_with_its_code() {
    let produce = Api::Produce;
    check(produce, Reply::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, Err(Code::RecordTooLarge));
    check(
        produce,
        Reply::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        Err(Code::KafkaAuthorization),
    );
    check(produce, Reply::RD_KAFKA_RESP_ERR_INVALID_RECORD, Err(Code::TopicCompacted));
    check(produce, Reply::RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, Err(Code::KafkaTransaction));
}

#[test]
fn what_may_heal_is_tried_again_inside_the_transaction() {
    let (produce, end) = (Api::Produce, Api::EndTxn);
    check(produce, Reply::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, Ok(()));
    check(produce, Reply::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, Ok(()));
    check(end, Reply::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, Ok(()));
    check(end, Reply::RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS, Ok(()));
    let add = Api::AddPartitionsToTxn;
    check(add, Reply::RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS, Ok(()));
}

#[test]
fn a_refused_end_is_a_fault_and_nothing_counts_as_committed() {
    let end = Api::EndTxn;
    check(end, Reply::RD_KAFKA_RESP_ERR_PRODUCER_FENCED, Err(Code::KafkaFenced));
    check(end, Reply::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, Err(Code::KafkaFenced));
    check(end, Reply::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE, Err(Code::KafkaTransaction));
    check(
        end,
        Reply::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Err(Code::KafkaAuthorization),
    );
}

#[test]
fn a_partition_that_the_coordinator_refuses_is_named() {
    let bench = Bench::new(&[]);
    let mut transactions = bench.open().unwrap();
    let error = Reply::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    bench.fail(Api::AddPartitionsToTxn, &[error]);
    transactions.begin().unwrap();
    transactions.produce(&batch(100)).unwrap();
    let fault = transactions.commit(&offset()).unwrap_err();
    assert_eq!(fault.code(), Code::KafkaAuthorization, "{fault}");
    assert!(fault.place().table.is_some(), "{fault}");
}

#[test]
fn a_record_that_comes_after_the_transaction_failed_tells_why_it_failed() {
    let bench = Bench::new(&[]);
    let mut transactions = bench.open().unwrap();
    bench.fail(Api::AddPartitionsToTxn, &[Reply::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED]);
    transactions.begin().unwrap();
    // Sent without a look at the client's events, as within one batch.
    let record = || BaseRecord::<[u8], [u8]>::to("t").key(&b"k"[..]).payload(&b"v"[..]);
    let fault = loop {
        if let Err(fault) = transactions.send(record()) {
            break fault;
        }
        thread::yield_now();
    };
    assert_eq!(fault.code(), Code::KafkaAuthorization, "{fault}");
}

#[test]
fn a_transactional_id_that_may_not_be_used_is_told_at_the_start() {
    let open = |error| {
        let bench = Bench::new(&[]);
        bench.fail(Api::InitProducerId, &[error]);
        bench.open().map(drop).map_err(|fault| fault.code())
    };
    assert_eq!(
        open(Reply::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        Err(Code::KafkaAuthorization)
    );
    assert_eq!(
        open(Reply::RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT),
        Err(Code::ConfigInvalid)
    );
    assert_eq!(open(Reply::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS), Ok(()));
}

#[test]
fn a_record_beyond_the_producers_own_limit_is_refused_by_name() {
    let bench = Bench::new(&[("max.request.size", "2000")]);
    let mut transactions = bench.open().unwrap();
    transactions.begin().unwrap();
    let fault = transactions.produce(&batch(2000)).unwrap_err();
    assert_eq!(fault.code(), Code::RecordTooLarge, "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some("t"));
    assert!(fault.message().contains("2000 bytes"), "{fault}");
}

#[test]
fn while_the_broker_is_away_nothing_counts_as_committed() {
    let bench = Bench::new(&[("reconnect.backoff.max.ms", "100")]);
    let mut transactions = bench.begun();
    bench.cluster.broker_down(1).unwrap();
    let commit = thread::spawn(move || transactions.commit(&offset()));
    while bench.metrics.records() < 1 {
        thread::yield_now();
    }
    assert!(!commit.is_finished());
    assert_eq!(bench.metrics.transactions_committed(), 0);
    bench.cluster.broker_up(1).unwrap();
    commit.join().unwrap().unwrap();
    assert_eq!(bench.metrics.transactions_committed(), 1);
}

#[test]
fn a_stop_does_not_wait_for_a_broker_that_is_away() {
    let bench = Bench::new(&[]);
    let mut transactions = bench.begun();
    bench.cluster.broker_down(1).unwrap();
    let commit = thread::spawn(move || transactions.commit(&offset()));
    bench.stop.store(true, Ordering::Relaxed);
    let fault = commit.join().unwrap().unwrap_err();
    assert_eq!(fault.code(), Code::KafkaTransaction);
    assert!(fault.message().contains("told to stop"), "{fault}");
}

#[test]
fn a_transaction_that_cannot_end_in_time_says_so() {
    let bench = Bench::new(&[("transaction.timeout.ms", "1000")]);
    let mut transactions = bench.begun();
    bench.cluster.broker_down(1).unwrap();
    let fault = transactions.commit(&offset()).unwrap_err();
    assert!(
        matches!(fault.code(), Code::KafkaTransaction | Code::TransactionTooLong),
        "retried, whatever it is called: {fault}"
    );
    assert!(fault.to_string().contains("imed out"), "{fault}");
}

#[test]
fn a_fence_after_the_transactions_own_time_is_no_second_worker() {
    let bench = Bench::new(&[]);
    let mut transactions = bench.begun();
    let fenced = || Code::KafkaFenced.fault("fenced");
    assert_eq!(transactions.unless_expired(fenced()).code(), Code::KafkaFenced);
    transactions.timeout = Duration::ZERO;
    assert_eq!(transactions.unless_expired(fenced()).code(), Code::TransactionTooLong);
    transactions.opened = None;
    assert_eq!(transactions.unless_expired(fenced()).code(), Code::KafkaFenced);
}
