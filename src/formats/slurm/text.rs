//! What `scontrol show node`, `show job` and `show topology` print, also with `-d` and `-o`, and `topology.conf`.

use std::io::BufRead;

use super::super::error::FormatError;
use super::super::lines::Lines;
use super::Records;
use super::record::{Holding, JobRecord, NodeRecord, state_words};
use super::topology::Line as TopologyLine;

/// Reads records of `KEY=VALUE`, each from a line that starts at the margin to the next. Records of other kinds are
/// skipped.
///
/// # Errors
/// If it cannot be read, is no text, or a value is malformed.
pub(super) fn read(name: &str, reader: impl BufRead, records: &mut Records) -> Result<(), FormatError> {
    let mut lines = Lines::new(name, reader);
    let mut record = Fields::default();
    while let Some((line, bytes)) = lines.next()? {
        let fault = |text: &str| FormatError::new(name, text).at_line(line);
        let text = std::str::from_utf8(bytes).map_err(|_| fault("found bytes that are not UTF-8, expected text"))?;
        let at_margin = !text.starts_with(char::is_whitespace) && !text.starts_with('#');
        if at_margin {
            record.finish(name, records)?;
            record.start(line);
        }
        if !text.trim_start().starts_with('#') {
            record.add(text);
        }
    }
    record.finish(name, records)
}

/// The fields of one record, in their order; some keys come more than once.
#[derive(Default)]
struct Fields {
    line: u64,
    fields: Vec<(String, String)>,
}

impl Fields {
    fn start(&mut self, line: u64) {
        self.line = line;
        self.fields.clear();
    }

    fn add(&mut self, text: &str) {
        for word in text.split_ascii_whitespace() {
            // A value may hold blanks; a word without a key goes on with the one before.
            let pair = word.split_once('=').filter(|(key, _)| is_key(key));
            match (pair, self.fields.last_mut()) {
                (Some((key, value)), _) => self.fields.push((key.to_owned(), value.to_owned())),
                (None, Some((_, value))) => {
                    value.push(' ');
                    value.push_str(word);
                }
                (None, None) => {}
            }
        }
    }

    /// The first value of a key; empty where there is none.
    fn text(&self, key: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == key).map_or("", |(_, value)| value.as_str());
        if matches!(found, "(null)" | "N/A" | "None") { "" } else { found }
    }

    fn has(&self, key: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == key)
    }

    fn list(&self, key: &str) -> Vec<String> {
        self.text(key).split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// A number, the first of a range; 0 where there is none.
    fn number(&self, key: &str) -> u64 {
        let text = self.text(key);
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        text[..digits].parse().unwrap_or(0)
    }

    fn finish(&self, name: &str, records: &mut Records) -> Result<(), FormatError> {
        let fault = |text: String| FormatError::new(name, text).at_line(self.line);
        match self.fields.first().map(|(key, value)| (key.as_str(), value)) {
            // A configuration file has nodes too, whose states nobody knows.
            Some(("NodeName", node)) if self.has("CPUTot") => records.nodes.push(self.node(node)),
            Some(("NodeName", _)) => {
                return Err(fault("found a node without CPUTot, expected what scontrol show node prints".to_owned()));
            }
            Some(("JobId", id)) => {
                let id = id.parse().map_err(|_| fault(format!("found {id:?}, expected the number of a job")))?;
                records.jobs.push(self.job(id));
            }
            Some((kind @ ("SwitchName" | "BlockName"), part)) => records.topology.push(TopologyLine {
                is_block: kind == "BlockName",
                name: part.clone(),
                hosts: self.text("Nodes").to_owned(),
                is_leaf: !self.has("Switches"),
            }),
            _ => return Ok(()),
        }
        Ok(())
    }

    fn node(&self, name: &str) -> NodeRecord {
        let cpus = self.number("CPUEfctv");
        NodeRecord {
            name: name.to_owned(),
            states: state_words(self.text("State")),
            gres: self.text("Gres").to_owned(),
            gres_used: self.has("GresUsed").then(|| self.text("GresUsed").to_owned()),
            cpus: if cpus == 0 { self.number("CPUTot") } else { cpus },
            cpus_used: self.number("CPUAlloc"),
            memory_mib: self.number("RealMemory").saturating_sub(self.number("MemSpecLimit")),
            memory_used: self.number("AllocMem"),
            partitions: self.list("Partitions"),
            features: self.list("ActiveFeatures"),
            topology: self.text("Topology").to_owned(),
            owned: !self.text("Owner").is_empty(),
        }
    }

    fn job(&self, id: u64) -> JobRecord {
        // Before 23.02 one list says what was asked, and later what was given.
        let tres = |key| if self.text(key).is_empty() { self.text("TRES") } else { self.text(key) }.to_owned();
        let remaining = seconds(self.text("TimeLimit")).zip(seconds(self.text("RunTime")));
        let array_tasks = self.text("ArrayTaskId");
        JobRecord {
            id,
            name: self.text("JobName").to_owned(),
            states: state_words(self.text("JobState")),
            reason: self.text("Reason").split(',').next().unwrap_or("").to_owned(),
            partitions: self.list("Partition"),
            priority: self.number("Priority"),
            nodes: self.number("NumNodes"),
            tasks: self.number("NumTasks"),
            asked: tres("ReqTRES"),
            given: tres("AllocTRES"),
            per_node: self.text("TresPerNode").to_owned(),
            per_task: self.text("TresPerTask").to_owned(),
            per_job: self.text("TresPerJob").to_owned(),
            per_socket: self.text("TresPerSocket").to_owned(),
            required_nodes: self.text("ReqNodeList").to_owned(),
            excluded_nodes: self.text("ExcNodeList").to_owned(),
            features: self.text("Features").to_owned(),
            switches: self.number("Switches"),
            exclusive: matches!(self.text("OverSubscribe"), "NO" | "EXCLUSIVE"),
            reservation: !self.text("Reservation").is_empty(),
            requeue: self.text("Requeue") == "1",
            batch: self.text("BatchFlag") != "0",
            heterogeneous: Some(self.number("HetJobId")).filter(|&id| id > 0),
            array_tasks: array_tasks.to_owned(),
            remaining_s: remaining.map(|(limit, run)| limit.saturating_sub(run)),
            end_s: None,
            detailed: self.has("CPU_IDs") || self.has("GRES"),
            holdings: self.holdings(),
        }
    }

    /// The lines `Nodes=… CPU_IDs=… Mem=… GRES=…`, or the list of nodes where there are none.
    fn holdings(&self) -> Vec<Holding> {
        let mut holdings: Vec<Holding> = Vec::new();
        for (key, value) in &self.fields {
            let holding = holdings.last_mut();
            match (key.as_str(), holding) {
                ("Nodes", _) => holdings.push(Holding { hosts: value.clone(), ..Holding::default() }),
                ("CPU_IDs", Some(holding)) => holding.cpus = count(value),
                ("Mem", Some(holding)) => holding.memory_mib = value.parse().ok(),
                ("GRES", Some(holding)) => holding.gres.clone_from(value),
                _ => {}
            }
        }
        if holdings.is_empty() {
            holdings.push(Holding { hosts: self.text("NodeList").to_owned(), ..Holding::default() });
        }
        holdings
    }
}

/// A key is letters, digits and a few marks: `Requeue`, `ReqB:S:C:T`, `Socks/Node`.
fn is_key(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_:/".contains(&byte);
    text.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase()) && text.bytes().all(inside)
}

/// How many a list such as `0-3,8` names.
fn count(list: &str) -> Option<u64> {
    let mut sum = 0_u64;
    for range in list.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        sum = sum.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(sum)
}

/// The seconds of a time such as `1-00:00:00`, `12:30:00` or `05:00`.
fn seconds(text: &str) -> Option<u64> {
    const DAY: u64 = 24 * 3600;
    let (days, clock) = text.split_once('-').map_or((Some(0), text), |(days, clock)| (days.parse().ok(), clock));
    let parts = clock.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<u64>>>()?;
    let [hours, minutes, seconds] = match parts[..] {
        [hours, minutes, seconds] => [hours, minutes, seconds],
        [minutes, seconds] => [0, minutes, seconds],
        _ => return None,
    };
    // No time limit is longer; more would be no time at all.
    let most = |n: u64| n <= 1 << 32;
    let days = days.filter(|&days| most(days) && most(hours) && most(minutes) && most(seconds))?;
    Some(days * DAY + hours * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_are_read() {
        for (text, expected) in [
            ("1-00:00:00", Some(86_400)),
            ("00:00:26", Some(26)),
            ("365-00:00:00", Some(31_536_000)),
            ("05:00", Some(300)),
            ("UNLIMITED", None),
            ("", None),
            ("99999999999-00:00:00", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        assert_eq!(
            [count("0-3,8"), count("7"), count(""), count("3-1"), count("x")],
            [Some(5), Some(1), Some(0), None, None]
        );
    }

    #[test]
    fn values_may_hold_blanks() {
        let mut fields = Fields::default();
        fields.add("NodeName=n1 Arch=x86_64 ");
        fields.add("   OS=Linux 6.18 #1 SMP State=IDLE");
        fields.add("   Reason=it said a=b [root@2026]");
        assert_eq!((fields.text("OS"), fields.text("State")), ("Linux 6.18 #1 SMP", "IDLE"));
        assert_eq!(fields.text("Reason"), "it said a=b [root@2026]");
    }
}
