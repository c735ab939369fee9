//! A server of the test's own, from the binaries of the server that the stack runs: for what a
//! shared one cannot be asked (certificates, access rules, settings that need a restart).

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tidegate::sources::postgres::ConnectionSettings;

/// The user `nobody`: a server refuses to run as root.
const NOBODY: u32 = 65_534;

/// A running server. Dropping it stops it and removes its files.
pub(super) struct Cluster {
    binaries: PathBuf,
    pub(super) directory: PathBuf,
    port: u16,
    is_root: bool,
}

impl Cluster {
    /// Starts a server with these settings and access rules; files in `directory()` may be named
    /// in them. `None`: skipped, and said so.
    pub(super) async fn start(
        name: &str,
        conf: &str,
        access: &str,
        prepare: impl FnOnce(&Path),
    ) -> Option<Self> {
        let url = super::super::service("TIDEGATE_TEST_PG")?;
        let stack = super::connect(&url.parse().expect("a connection URL")).await;
        let sql = "SELECT setting FROM pg_config WHERE name = 'BINDIR'";
        let row = stack.query_one(sql, &[]).await.expect("where the binaries are");
        let binaries = PathBuf::from(row.get::<_, String>(0));
        assert!(binaries.join("initdb").exists(), "the stack's server must be a local one");
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("bound").port();
        let directory =
            std::env::temp_dir().join(format!("tidegate-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let is_root = fs::metadata(&directory).expect("the directory").uid() == 0;
        let cluster = Self { binaries, directory, port, is_root };
        prepare(&cluster.directory);
        cluster.give_away();
        let data = cluster.directory.join("data");
        let data = data.to_str().expect("a path in UTF-8");
        let locale = ["-E", "UTF8", "--locale=C", "--no-sync"];
        cluster
            .run("initdb", &[&["-D", data, "-U", "postgres", "-A", "trust"], &locale[..]].concat());
        let always = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nfsync = off\nwal_level = logical\n\
             unix_socket_directories = '{}'\n",
            cluster.directory.display()
        );
        fs::write(format!("{data}/postgresql.auto.conf"), always + conf).expect("written");
        fs::write(format!("{data}/pg_hba.conf"), format!("local all all trust\n{access}"))
            .expect("written");
        cluster.give_away();
        drop(free);
        let log = format!("{data}/log");
        cluster.run("pg_ctl", &["-D", data, "-l", &log, "-w", "start"]);
        Some(cluster)
    }

    /// Runs statements as the superuser.
    pub(super) async fn execute(&self, sql: &str) {
        let mut config = tokio_postgres::Config::new();
        config.host_path(&self.directory).port(self.port).user("postgres").dbname("postgres");
        let client = super::connect(&config).await;
        let outcome = client.batch_execute(sql).await;
        assert!(outcome.is_ok(), "{sql}: {outcome:?}");
    }

    /// How to connect over TCP.
    pub(super) fn settings(&self, user: &str, password: &str) -> ConnectionSettings {
        let mut config = tokio_postgres::Config::new();
        config.host("localhost").port(self.port).user(user).password(password).dbname("postgres");
        super::settings(&config)
    }

    /// If the tests run as root, the server must own its files.
    fn give_away(&self) {
        fn walk(path: &Path) {
            chown(path, Some(NOBODY), None).expect("given away");
            if path.is_dir() {
                for entry in fs::read_dir(path).expect("a directory") {
                    walk(&entry.expect("an entry").path());
                }
            }
        }
        if self.is_root {
            walk(&self.directory);
        }
    }

    /// Stops it and starts it with another setting.
    pub(super) fn restart_with(&self, setting: &str) {
        let data = self.directory.join("data");
        let path = data.join("postgresql.auto.conf");
        let conf = fs::read_to_string(&path).expect("written before");
        fs::write(&path, format!("{conf}{setting}\n")).expect("written");
        let (data, log) = (data.to_string_lossy(), data.join("log"));
        self.run("pg_ctl", &["-D", &data, "-l", &log.to_string_lossy(), "-w", "restart"]);
    }

    /// Lets it start as a standby that has no primary.
    pub(super) fn restart_as_standby(&self) {
        fs::write(self.directory.join("data/standby.signal"), "").expect("written");
        self.give_away();
        self.restart_with("");
    }

    /// Ends recovery: a new timeline begins.
    pub(super) fn promote(&self) {
        let data = self.directory.join("data");
        self.run("pg_ctl", &["-D", &data.to_string_lossy(), "-w", "promote"]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.binaries.join(program));
        command.args(arguments).current_dir(&self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if self.is_root {
            command.uid(NOBODY);
        }
        let status = command.status().expect("the program runs");
        assert!(status.success(), "{program} {arguments:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.directory.join("data");
        if data.join("postmaster.pid").exists() {
            self.run("pg_ctl", &["-D", &data.to_string_lossy(), "-m", "immediate", "-w", "stop"]);
        }
        fs::remove_dir_all(&self.directory).expect("removed");
    }
}

/// What OpenSSL is to make.
pub(super) struct Certificate {
    /// Of the files, without ending.
    pub(super) name: &'static str,
    pub(super) common_name: &'static str,
    /// Alternative names.
    pub(super) names: Option<&'static str>,
    /// The name of the certificate that signs; `None`: itself.
    pub(super) authority: Option<&'static str>,
    /// Algorithm and size.
    pub(super) key: &'static [&'static str],
}

/// A key that the certificates of most servers use.
pub(super) const RSA: &[&str] = &["-newkey", "rsa:2048"];

impl Certificate {
    /// Makes the key and the certificate.
    pub(super) fn create(&self, directory: &Path) {
        let subject = format!("/CN={}", self.common_name);
        let (key, file) = (format!("{}.key", self.name), format!("{}.pem", self.name));
        let mut arguments = vec!["req", "-x509", "-nodes", "-days", "30", "-subj", &subject];
        arguments.extend(self.key);
        arguments.extend(["-keyout", &key, "-out", &file]);
        let names = self.names.map(|names| format!("subjectAltName={names}"));
        arguments.extend(names.iter().flat_map(|names| ["-addext", names.as_str()]));
        let signer = self.authority.map(|name| (format!("{name}.pem"), format!("{name}.key")));
        if let Some((certificate, key)) = &signer {
            arguments.extend(["-CA", certificate, "-CAkey", key]);
            arguments.extend(["-addext", "basicConstraints=critical,CA:FALSE"]);
        }
        let done = Command::new("openssl").args(&arguments).current_dir(directory).output();
        let done = done.expect("openssl runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(directory.join(key), mode).expect("private");
    }
}
