//! Topics: created by rule, described, refused with the broker's reason.

use std::collections::HashSet;

use tidegate::error::Code;
use tidegate::kafka::{
    CleanupPolicy, ClientKind, ClientProperties, SizeLimits, Staged, TopicGroup, Topics,
    topic_pattern,
};

use super::{Task, add, broker, offset, read, settings, topic_of};

/// Properties of the user who may not write.
pub(super) fn mallory(sasl: &str, kind: ClientKind) -> ClientProperties {
    let jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required \
                username=\"mallory\" password=\"mallory-secret\";";
    let properties = [
        ("bootstrap.servers", sasl),
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "PLAIN"),
        ("sasl.jaas.config", jaas),
    ];
    ClientProperties::translate(kind, properties).unwrap()
}

#[tokio::test]
async fn a_topic_is_created_by_its_group_and_the_race_may_be_lost() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "groups", &[]);
    let creation = &mut settings.topic_creation;
    creation.default.partitions = 3;
    creation.default.replication_factor = 1;
    creation.groups.push(TopicGroup {
        name: "compacted".into(),
        include: vec![topic_pattern(".*\\.k").unwrap()],
        configs: vec![("cleanup.policy".into(), "compact".into())],
        ..TopicGroup::default()
    });
    let topics = Topics::connect(&settings).await.unwrap();
    let (first, second) = (topic_of(&settings), format!("{}.k", settings.connector));
    let (one, other) = tokio::join!(topics.ensure(&first), topics.ensure(&first));
    let facts = one.unwrap();
    assert_eq!((facts.partitions, facts.cleanup_policy), (3, Some(CleanupPolicy::Delete)));
    assert!(facts.created || other.unwrap().created);
    assert!(facts.max_message_bytes.unwrap() > 1000);
    let facts = topics.ensure_all(&[&second, &first]).await.unwrap();
    assert_eq!(facts[0].cleanup_policy, Some(CleanupPolicy::Compact));
    assert_eq!([facts[0].created, facts[1].created], [true, false]);
}

#[tokio::test]
async fn many_topics_are_created_together() {
    let Some(broker) = broker() else { return };
    let settings = settings(&broker, "many", &[]);
    let topics = Topics::connect(&settings).await.unwrap();
    let names: Vec<String> = (0..30).map(|n| format!("{}.{n}", settings.connector)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let facts = topics.ensure_all(&names).await.unwrap();
    assert!(facts.len() == 30 && facts.iter().all(|facts| facts.created && facts.partitions > 0));
}

#[tokio::test]
async fn refusals_name_the_topic_and_the_reason() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "refuse", &[]);
    let topic = topic_of(&settings);
    settings.topic_creation.default.replication_factor = 30;
    let fault = Topics::connect(&settings).await.unwrap().ensure(&topic).await.unwrap_err();
    assert_eq!(fault.code(), Code::TopicCreation, "{fault}");
    let text = fault.to_string();
    assert!(text.contains(&topic) && text.contains("eplication factor"), "{text}");
    let fault = Topics::connect(&settings).await.unwrap().try_creation(&topic).await.unwrap_err();
    assert_eq!(fault.code(), Code::TopicCreation, "{fault}");

    let topics = Topics::connect(&settings).await.unwrap();
    let fault = topics.ensure("no topic!").await.unwrap_err();
    assert_eq!(fault.code(), Code::TopicCreation, "{fault}");

    settings.topic_creation.enabled = false;
    let topics = Topics::connect(&settings).await.unwrap();
    let fault = topics.ensure(&topic).await.unwrap_err();
    assert_eq!(fault.code(), Code::TopicMissing, "{fault}");
    assert!(fault.to_string().contains("topic.creation.enable"), "{fault}");
    assert_eq!(topics.describe(&topic).await.unwrap(), None);
}

/// The broker refuses a batch as a whole, and the client does not split it.
#[tokio::test]
async fn a_topic_with_a_small_limit_gets_small_batches() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "small", &[("linger.ms", "50")]);
    settings.topic_creation.default.configs = vec![("max.message.bytes".into(), "9000".into())];
    let topics = Topics::connect(&settings).await.unwrap();
    let facts = topics.ensure(&topic_of(&settings)).await.unwrap();
    let value = "x".repeat(1000);
    let values = vec![value.as_str(); 50];

    let mut task = Task::start(&settings).await;
    task.list.set_limit(facts.max_message_bytes);
    task.send_records(&values, "1", true).await;
    task.flush().await.unwrap();
    assert_eq!(task.committed_values().await.len(), 50);
    task.finish().await.unwrap();

    let mut ignorant = Task::start(&settings).await;
    ignorant.send_records(&values, "2", true).await;
    let fault = ignorant.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::RecordTooLarge, "{fault}");
}

/// The check before staging and the broker draw the line at the same byte.
#[tokio::test]
async fn the_size_check_agrees_with_the_broker() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "sizes", &[]);
    settings.topic_creation.default.configs = vec![("max.message.bytes".into(), "300000".into())];
    let topics = Topics::connect(&settings).await.unwrap();
    let facts = topics.ensure(&topic_of(&settings)).await.unwrap();
    let mut task = Task::start(&settings).await;
    let mut limits = SizeLimits::new(&settings);
    limits.learn(task.topic, &facts);
    let one = |len: usize| {
        let mut batch = tidegate::record::Batch::new();
        add(&mut batch, task.topic, Some(b"key"), Some(&vec![b'x'; len]), &[("h", Some(b"v"))]);
        batch
    };
    let fits = |len: &usize| limits.check(&one(*len), 0..1, &task.list).is_ok();
    let largest = (299_000..300_000).take_while(fits).last().unwrap();
    let (fitting, refused) = (one(largest), one(largest + 1));
    let fault = limits.check(&refused, 0..1, &task.list).unwrap_err();
    assert!(fault.message().contains("300001 bytes"), "{fault}");
    let records = |batch, text| Staged::Records {
        batch,
        states: Vec::new(),
        offset: offset(text),
        complete: true,
    };
    task.send(records(fitting, "1")).await;
    task.flush().await.unwrap();
    task.send(records(refused, "2")).await;
    let fault = task.publisher.ended().await.unwrap_err();
    assert_eq!(fault.code(), Code::RecordTooLarge, "{fault}");
}

#[tokio::test]
async fn wrong_credentials_are_told_at_once() {
    if broker().is_none() {
        return;
    }
    let Some(sasl) = crate::service("TIDEGATE_TEST_KAFKA_SASL") else { return };
    let mut settings = settings(&sasl, "credentials", &[]);
    settings.consumer = ClientProperties::translate(
        ClientKind::Consumer,
        [
            ("bootstrap.servers", sasl.as_str()),
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", "mallory"),
            ("sasl.password", "S3cret-wrong"),
        ],
    )
    .unwrap();
    let fault = Topics::connect(&settings).await.unwrap_err();
    assert_eq!(fault.code(), Code::KafkaAuthentication, "{fault}");
    assert!(!fault.to_string().contains("S3cret"), "{fault}");
}

#[tokio::test]
async fn keys_go_where_javas_client_sends_them() {
    let Some(broker) = broker() else { return };
    let mut settings = settings(&broker, "partitions", &[]);
    settings.topic_creation.default.partitions = 6;
    let mut task = Task::start(&settings).await;
    task.create_topic().await;
    let keys: [(&[u8], i32); 6] = [
        (&[0, 0, 0, 0, 1, 0x02], 0),
        (&[0, 0, 0, 0, 1, 0x04], 4),
        (&[0, 0, 0, 0, 1, 0x54], 0),
        (&[0, 0, 0, 0, 1, 0xd0, 0x0f], 4),
        (&[0, 0, 0, 0, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f], 3),
        (&[], tidegate::kafka::murmur2::partition(&[], 6)),
    ];
    let mut batch = tidegate::record::Batch::new();
    for (key, _) in keys {
        add(&mut batch, task.topic, Some(key), Some(b"v"), &[]);
    }
    task.send(Staged::Records { batch, states: Vec::new(), offset: offset("1"), complete: true })
        .await;
    task.flush().await.unwrap();
    let read = read(&settings, &topic_of(&settings), "read_committed").await;
    for number in 0..40 {
        task.transaction(&number.to_string()).await;
        task.flush().await.unwrap();
    }
    for (key, partition) in keys {
        let record = read.iter().find(|record| record.key.as_deref() == Some(key)).unwrap();
        assert_eq!(record.partition, partition, "{key:?}");
    }
    let read = super::read(&settings, &topic_of(&settings), "read_committed").await;
    let spread: HashSet<i32> =
        read.iter().filter(|record| record.key.is_none()).map(|record| record.partition).collect();
    assert!(spread.len() > 2, "records without key went to {spread:?}");
    task.finish().await.unwrap();
}
