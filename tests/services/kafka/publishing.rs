//! Publishing: what is visible to readers, and which offset is stored, after each kind of end.

use std::time::Duration;

use tidegate::error::Code;
use tidegate::kafka::{Staged, TableState};

use super::{Task, add, broker, offset, read, settings, topic_of, values};
use tidegate::record::Batch;

#[tokio::test]
async fn records_and_offset_are_committed_together() {
    let Some(broker) = broker() else { return };
    let mut task = Task::start(&settings(&broker, "together", &[])).await;
    task.create_topic().await;
    assert_eq!((task.acknowledged(), task.stored().await), (None, None));
    task.transaction("1").await;
    task.transaction("2").await;
    task.flush().await.unwrap();
    assert_eq!(task.acknowledged().as_deref(), Some("2"));
    assert_eq!(task.stored().await.as_deref(), Some("2"));
    assert_eq!(task.committed_values().await, ["1", "2"]);
    task.finish().await.unwrap();
}

#[tokio::test]
async fn keys_tombstones_and_headers_arrive_as_they_were_staged() {
    let Some(broker) = broker() else { return };
    let mut task = Task::start(&settings(&broker, "shape", &[])).await;
    task.create_topic().await;
    let mut batch = Batch::new();
    let headers = [("a", Some(&b"1"[..])), ("none", None), ("empty", Some(&b""[..]))];
    add(&mut batch, task.topic, Some(b"k"), Some(b"v"), &headers);
    add(&mut batch, task.topic, Some(b"k"), None, &[]);
    add(&mut batch, task.topic, Some(b""), Some(b""), &[]);
    add(&mut batch, task.topic, None, Some(b"x"), &[]);
    task.send(Staged::Records { batch, states: Vec::new(), offset: offset("1"), complete: true })
        .await;
    task.flush().await.unwrap();
    let read = read(&task.settings, &topic_of(&task.settings), "read_committed").await;
    let seen: Vec<_> = read.iter().map(|r| (r.key.as_deref(), r.value.as_deref())).collect();
    assert_eq!(
        seen,
        [
            (Some(&b"k"[..]), Some(&b"v"[..])),
            (Some(b"k"), None),
            (Some(b""), Some(b"")),
            (None, Some(b"x"))
        ]
    );
    let headers: Vec<_> =
        read[0].headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    assert_eq!(headers, [("a", Some(&b"1"[..])), ("empty", Some(b"")), ("none", None)]);
    task.finish().await.unwrap();
}

#[tokio::test]
async fn a_crash_with_a_transaction_open_leaves_nothing_of_it() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "crash", &[]);
    let mut task = Task::start(&settings).await;
    task.create_topic().await;
    task.transaction("1").await;
    task.flush().await.unwrap();
    let mut metrics = 0;
    task.send_records(&["2", "3"], "2", false).await;
    while metrics < 3 {
        tokio::task::yield_now().await;
        metrics = task.publisher.metrics().records();
    }
    task.crash().await;

    let mut task = Task::start(&settings).await;
    assert_eq!(task.stored().await.as_deref(), Some("1"));
    task.transaction("2'").await;
    task.flush().await.unwrap();
    assert_eq!(task.committed_values().await, ["1", "2'"]);
    assert_eq!(task.stored().await.as_deref(), Some("2'"));
    task.finish().await.unwrap();
}

/// Kills at many moments: before the first record, while it is produced, while it is committed, and
/// after. Each time the next task goes on behind the stored offset, as a source would.
#[tokio::test]
async fn crashes_at_any_moment_lose_nothing_and_double_nothing() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "moments", &[]);
    settings.boundaries.linger = Duration::from_millis(3);
    let mut next = 1;
    for moment in 0..12_u64 {
        let mut task = Task::start(&settings).await;
        if moment == 0 {
            task.create_topic().await;
        }
        let stored = task.stored().await.map_or(0, |offset| offset.parse::<u64>().unwrap());
        assert!(stored + 1 >= next, "{stored} after {next}");
        next = stored + 1;
        for number in next..next + 50 {
            task.transaction(&number.to_string()).await;
        }
        // Some records on their way, some transactions committed: other ones each time.
        while task.publisher.metrics().records() < moment * 4
            || task.publisher.metrics().transactions_committed() < moment % 2
        {
            tokio::task::yield_now().await;
        }
        let acknowledged = task.acknowledged().map_or(0, |offset| offset.parse().unwrap());
        next = next.max(acknowledged + 1);
        task.crash().await;
    }
    let mut task = Task::start(&settings).await;
    let stored: u64 = task.stored().await.unwrap().parse().unwrap();
    task.flush().await.unwrap();
    let expect: Vec<String> = (1..=stored).map(|number| number.to_string()).collect();
    assert_eq!(task.committed_values().await, expect);
    assert!(stored + 1 >= next && stored > 10, "{stored}");
    task.finish().await.unwrap();
}

#[tokio::test]
async fn an_older_producer_is_fenced_off_and_writes_nothing_visible() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "fence", &[]);
    let mut old = Task::start(&settings).await;
    old.create_topic().await;
    old.transaction("1").await;
    old.flush().await.unwrap();

    let mut new = Task::start(&settings).await;
    assert_eq!(new.stored().await.as_deref(), Some("1"));
    old.transaction("zombie").await;
    let fault = old.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::KafkaFenced, "{fault}");
    assert_eq!(old.acknowledged().as_deref(), Some("1"));

    new.transaction("2").await;
    new.flush().await.unwrap();
    assert_eq!(new.committed_values().await, ["1", "2"]);
    assert_eq!(new.stored().await.as_deref(), Some("2"));
    new.finish().await.unwrap();
}

#[tokio::test]
async fn a_zombie_with_a_transaction_open_is_fenced_off_too() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "zombie", &[]);
    let mut old = Task::start(&settings).await;
    old.create_topic().await;
    old.send_records(&["a"], "a+", false).await;
    while old.publisher.metrics().records() < 1 {
        tokio::task::yield_now().await;
    }
    let mut new = Task::start(&settings).await;
    new.transaction("1").await;
    new.flush().await.unwrap();
    old.send_records(&["b"], "b", true).await;
    let fault = old.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::KafkaFenced, "{fault}");
    assert_eq!(new.committed_values().await, ["1"]);
    assert_eq!(new.stored().await.as_deref(), Some("1"));
    new.finish().await.unwrap();
}

#[tokio::test]
async fn poison_after_five_good_transactions_takes_none_of_them_down() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "poison", &[]);
    let mut task = Task::start(&settings).await;
    task.create_topic().await;
    for value in ["1", "2", "3", "4", "5"] {
        task.transaction(value).await;
    }
    let poison = Code::ValueUnrepresentable.fault("no way").at_position("0/6");
    task.send(Staged::Fault(poison.clone())).await;
    assert_eq!(task.publisher.ended().await, Err(poison));
    assert_eq!(task.acknowledged().as_deref(), Some("5"));
    assert_eq!(task.committed_values().await, ["1", "2", "3", "4", "5"]);

    let task = Task::start(&settings).await;
    assert_eq!(task.stored().await.as_deref(), Some("5"));
    task.finish().await.unwrap();
}

#[tokio::test]
async fn poison_inside_a_large_transaction_withdraws_only_that_one() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "large", &[]);
    let mut task = Task::start(&settings).await;
    task.create_topic().await;
    task.transaction("1").await;
    task.send_records(&["2a"], "2+1", false).await;
    task.send_records(&["2b"], "2+2", false).await;
    // Only what reached the broker can be withdrawn there.
    let topic = topic_of(&settings);
    while values(&settings, &topic, "read_uncommitted").await.len() < 3 {}
    task.send(Staged::Fault(Code::ValueUnrepresentable.fault("no way"))).await;
    let fault = task.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::ValueUnrepresentable);
    assert_eq!(task.committed_values().await, ["1"]);
    assert_eq!(values(&settings, &topic, "read_uncommitted").await, ["1", "2a", "2b"]);
    assert_eq!(task.acknowledged().as_deref(), Some("1"));
}

#[tokio::test]
async fn control_records_and_states_are_visible_before_anything_later() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "control", &[]);
    let mut task = Task::start(&settings).await;
    task.create_topic().await;
    let schema = format!("{}.schema", settings.connector);
    let control = task.list.id(&schema);
    let topics = tidegate::kafka::Topics::connect(&settings).await.unwrap();
    topics.ensure(&schema).await.unwrap();

    task.transaction("1").await;
    let state = |key: &str, value: &str| TableState {
        key: key.into(),
        value: Some(value.as_bytes().to_vec()),
    };
    task.send(Staged::Control {
        batch: super::batch(control, &["t changes"]),
        states: vec![state("public.t", "v1"), state("public.\"u", "v1")],
        offset: offset("1;control"),
    })
    .await;
    // Part of the next transaction is produced but not committed; the control record is out.
    task.send_records(&["2"], "2+", false).await;
    while task.publisher.metrics().records() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(task.acknowledged().as_deref(), Some("1;control"));
    assert_eq!(values(&settings, &schema, "read_committed").await, ["t changes"]);
    assert_eq!(task.committed_values().await, ["1"]);
    task.crash().await;

    let task = Task::start(&settings).await;
    let stored = task.publisher.stored().await.unwrap();
    assert_eq!(stored.offset.as_ref().map(super::text).as_deref(), Some("1;control"));
    assert_eq!(stored.states, [state("public.\"u", "v1"), state("public.t", "v1")]);
    task.finish().await.unwrap();
}

#[tokio::test]
async fn a_full_buffer_slows_down_and_drops_nothing() {
    let Some(broker) = broker() else { return };
    let tiny = [("queue.buffering.max.messages", "10"), ("linger.ms", "0")];
    let mut task = Task::start(&settings(&broker, "full", &tiny)).await;
    task.create_topic().await;
    let expect: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
    for chunk in expect.chunks(100) {
        let values: Vec<&str> = chunk.iter().map(String::as_str).collect();
        task.send_records(&values, values[0], true).await;
    }
    task.flush().await.unwrap();
    assert!(task.publisher.metrics().buffer_full() > 0);
    assert_eq!(task.committed_values().await, expect);
    task.finish().await.unwrap();
}

#[tokio::test]
async fn a_record_larger_than_the_whole_buffer_passes() {
    let Some(broker) = broker() else { return };
    let large = [("max.request.size", "3000000"), ("buffer.memory", "100000")];
    let mut settings = settings(&broker, "huge", &large);
    settings.topic_creation.default.configs = vec![("max.message.bytes".into(), "4000000".into())];
    let mut task = Task::start(&settings).await;
    task.create_topic().await;
    let value = "x".repeat(2_900_000);
    task.send_records(&[&value], "1", true).await;
    task.flush().await.unwrap();
    assert_eq!(task.committed_values().await, [value]);
    task.finish().await.unwrap();
}

#[tokio::test]
async fn a_record_that_the_broker_refuses_fails_by_name_and_leaves_nothing() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "refused", &[("max.request.size", "3000000")]);
    settings.topic_creation.default.configs = vec![("max.message.bytes".into(), "1000000".into())];
    let mut task = Task::start(&settings).await;
    task.create_topic().await;
    task.transaction("1").await;
    task.flush().await.unwrap();
    task.send_records(&[&"x".repeat(2_000_000)], "2", true).await;
    let fault = task.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::RecordTooLarge, "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some(topic_of(&settings).as_str()), "{fault}");
    assert!(fault.message().contains("2000000 bytes"), "{fault}");
    assert_eq!(task.acknowledged().as_deref(), Some("1"));
    assert_eq!(task.committed_values().await, ["1"]);
}

#[tokio::test]
async fn a_deleted_topic_fails_by_name() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "absent", &[]);
    let mut task = Task::start(&settings).await;
    // Never created: neither the worker nor the broker does it in passing.
    task.transaction("1").await;
    let fault = task.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::TopicMissing, "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some(topic_of(&settings).as_str()), "{fault}");
    let topics = tidegate::kafka::Topics::connect(&settings).await.unwrap();
    assert_eq!(topics.describe(&topic_of(&settings)).await.unwrap(), None);
}

#[tokio::test]
async fn a_transaction_that_may_not_be_written_fails_by_name() {
    let Some(broker) = broker() else { return };
    let Some(sasl) = crate::service("TIDEGATE_TEST_KAFKA_SASL") else { return };
    let admin = settings(&broker, "denied.mine", &[]);
    let topics = tidegate::kafka::Topics::connect(&admin).await.unwrap();
    topics.ensure(&topic_of(&admin)).await.unwrap();
    let mut settings = admin.clone();
    settings.producer = super::topics::mallory(&sasl, tidegate::kafka::ClientKind::Producer);
    // The internal topics are beyond suspicion.
    settings.offsets_topic.name = settings.offsets_topic.name.replace("denied.", "");
    settings.states_topic.name = settings.states_topic.name.replace("denied.", "");
    let mut task = Task::start(&settings).await;
    task.transaction("1").await;
    let fault = task.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::KafkaAuthorization, "{fault}");
    assert_eq!(fault.place().table.as_deref(), Some(topic_of(&settings).as_str()), "{fault}");
    assert_eq!(task.committed_values().await, Vec::<String>::new());
    assert_eq!(task.acknowledged(), None);
}

#[tokio::test]
async fn idle_markers_move_the_offset() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "marker", &[]);
    settings.boundaries.offset_flush_interval = Duration::from_millis(200);
    let mut task = Task::start(&settings).await;
    let mut committed = task.publisher.committed();
    for marker in ["1", "2"] {
        task.send(Staged::Marker { offset: offset(marker) }).await;
        committed.changed().await.unwrap();
        assert_eq!(task.acknowledged().as_deref(), Some(marker));
        assert_eq!(task.stored().await.as_deref(), Some(marker));
    }
    task.finish().await.unwrap();
}
