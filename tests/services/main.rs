//! Tests that need running services: one binary, one module per service.
//!
//! A test whose service is not named by its environment variable says so and ends.

mod kafka;
mod postgres;

/// Reads the variable that names a service, or says that the test is skipped.
fn service(variable: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told of their services in no other way"
    )]
    let address = std::env::var(variable).ok().filter(|address| !address.is_empty());
    if address.is_none() {
        // Whoever runs the tests must see it, even though a passing test's output is captured.
        let mut out = std::io::stderr();
        std::io::Write::write_fmt(&mut out, format_args!("skipped: {variable} is not set\n"))
            .expect("standard error");
    }
    address
}
