//! The stored offset: read to its end or not at all.

use std::time::Duration;

use tidegate::error::Code;
use tidegate::kafka::{self, Staged, TableState};

use super::{Task, broker, offset, settings, text};

#[tokio::test]
async fn the_offset_is_found_far_from_the_end_of_a_shared_partition() {
    let Some(broker) = broker() else { return };
    let mut first = settings(&broker, "far", &[]);
    first.offsets_topic.partitions = 1;
    let mut second = settings(&broker, "near", &[]);
    second.offsets_topic = first.offsets_topic.clone();
    let mut task = Task::start(&first).await;
    task.send(Staged::Marker { offset: offset("mine") }).await;
    task.finish().await.unwrap();

    let mut task = Task::start(&second).await;
    // Each flush is one record and one commit marker: well beyond the first tail.
    for number in 0..600 {
        let (done, _) = tokio::sync::oneshot::channel();
        let offset = Some(offset(&number.to_string()));
        task.send(Staged::Flush { offset, done }).await;
    }
    task.flush().await.unwrap();
    assert_eq!(task.stored().await.as_deref(), Some("599"));
    task.finish().await.unwrap();

    let task = Task::start(&first).await;
    assert_eq!(task.stored().await.as_deref(), Some("mine"));
    task.finish().await.unwrap();
}

#[tokio::test]
async fn a_reset_forgets_offset_and_states_and_fences() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "reset", &[]);
    let mut task = Task::start(&settings).await;
    let states = vec![TableState { key: "t".into(), value: Some(b"1".to_vec()) }];
    let batch = tidegate::record::Batch::new();
    task.send(Staged::Control { batch, states, offset: offset("7") }).await;
    task.flush().await.unwrap();
    kafka::offsets::reset(&settings).await.unwrap();
    task.transaction("zombie").await;
    assert_eq!(task.publisher.ended().await.unwrap_err().code(), Code::KafkaFenced);
    assert_eq!(kafka::offsets::stored(&settings).await.unwrap(), kafka::Stored::default());

    kafka::offsets::store(&settings, offset("9")).await.unwrap();
    let stored = kafka::offsets::stored(&settings).await.unwrap();
    assert_eq!(stored.offset.as_ref().map(text).as_deref(), Some("9"));
}

#[tokio::test]
async fn a_neighbours_open_transaction_means_unreadable_never_absent() {
    let Some(broker) = broker() else { return };
    let mut first = settings(&broker, "waiting", &[]);
    first.offsets_topic.partitions = 1;
    first.request_timeout = Duration::from_secs(3);
    let mut task = Task::start(&first).await;
    task.send(Staged::Marker { offset: offset("mine") }).await;
    task.flush().await.unwrap();
    let neighbour = tokio::task::spawn_blocking({
        let (broker, topic) = (broker.clone(), first.offsets_topic.name.clone());
        move || open_transaction(&broker, &topic)
    })
    .await
    .unwrap();
    let fault = task.publisher.stored().await.unwrap_err();
    assert_eq!(fault.code(), Code::OffsetUnreadable, "{fault}");
    tokio::task::spawn_blocking(move || {
        use rdkafka::producer::Producer as _;
        neighbour.abort_transaction(Duration::from_secs(20)).unwrap();
    })
    .await
    .unwrap();
    assert_eq!(task.stored().await.as_deref(), Some("mine"));
    task.finish().await.unwrap();
}

/// A transaction of somebody else, with a record in partition 0.
fn open_transaction(broker: &str, topic: &str) -> rdkafka::producer::BaseProducer {
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

    let producer: BaseProducer = rdkafka::config::ClientConfig::new()
        .set("bootstrap.servers", broker)
        .set("transactional.id", super::unique("neighbour"))
        .create()
        .unwrap();
    producer.init_transactions(Duration::from_secs(20)).unwrap();
    producer.begin_transaction().unwrap();
    producer.send(BaseRecord::to(topic).partition(0).key("other").payload("x")).ok().unwrap();
    while producer.in_flight_count() > 0 {
        producer.poll(Duration::from_millis(10));
    }
    producer
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_named_with_its_reason() {
    if broker().is_none() {
        return;
    }
    // Port 9 (discard) is not served.
    let mut settings = settings("127.0.0.1:9", "nobody", &[]);
    settings.request_timeout = Duration::from_secs(2);
    let fault = Task::try_start(&settings).await.err().unwrap();
    assert_eq!(fault.code(), Code::KafkaUnreachable, "{fault}");
    let text = fault.to_string();
    assert!(text.contains("127.0.0.1:9") && text.contains("refused"), "{text}");
}
