//! pgoutput and the replication protocol, sans-IO.
