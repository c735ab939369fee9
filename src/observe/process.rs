//! What Linux says of this process, from `/proc` (proc(5)). Elsewhere it says nothing.

use std::fs;

use super::definitions as m;
use super::exposition::Exposition;

/// Clock ticks per second in `/proc`: `USER_HZ`, which is 100 for programs on every architecture.
const TICKS: f64 = 100.0;

/// Adds the process's metrics; what cannot be read is left out.
pub fn add_process(out: &mut Exposition) {
    let read = |name: &str| fs::read_to_string(format!("/proc/{name}")).ok();
    if let Some(stat) = read("self/stat") {
        let boot = read("stat").and_then(|text| line_value(&text, "btime "));
        add_stat(out, &stat, boot);
    }
    if let Some(status) = read("self/status") {
        for (metric, name) in [(&m::RESIDENT, "VmRSS:"), (&m::VIRTUAL, "VmSize:")] {
            if let Some(kibibytes) = line_value(&status, name) {
                out.add(metric, &[], kibibytes * 1024.0);
            }
        }
    }
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        // reading the directory is one of them
        out.add_count(&m::OPEN_FDS, &[], entries.count().saturating_sub(1) as u64);
    }
    if let Some(limit) = read("self/limits").and_then(|text| line_value(&text, "Max open files")) {
        out.add(&m::MAX_FDS, &[], limit);
    }
}

fn add_stat(out: &mut Exposition, stat: &str, boot: Option<f64>) {
    // the program's name may hold anything, a parenthesis too; fields are counted behind it
    let Some((_, fields)) = stat.rsplit_once(')') else { return };
    let field = |number: usize| {
        let text = fields.split_ascii_whitespace().nth(number - 3)?;
        Some(text.parse::<f64>().ok()? / TICKS)
    };
    if let (Some(user), Some(system)) = (field(14), field(15)) {
        out.add(&m::CPU_SECONDS, &[], user + system);
    }
    if let (Some(boot), Some(start)) = (boot, field(22)) {
        out.add(&m::START_TIME, &[], boot + start);
    }
}

/// The first number behind a line's beginning.
fn line_value(text: &str, beginning: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let mut out = Exposition::default();
        let rest = "S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 9 0 1000 0 0";
        add_stat(&mut out, &format!("77 (a) b) {rest}"), Some(5.0));
        let text = out.finish([&m::PROCESS]);
        assert!(text.contains("\nprocess_cpu_seconds_total 3\n"), "{text}");
        assert!(text.contains("\nprocess_start_time_seconds 15\n"), "{text}");
    }

    #[test]
    fn this_process_is_described() {
        let mut out = Exposition::default();
        add_process(&mut out);
        let text = out.finish([&m::PROCESS]);
        assert_eq!(text.matches("# TYPE").count(), m::PROCESS.metrics.len(), "{text}");
    }
}
