//! A plan as commands for the scheduler that was dumped: text to be read, and carried out by hand.
//!
//! No scheduler has a command that moves something. What there is, is written; what there is not, stands in comments.

mod kubernetes;
mod slurm;

use super::number::counted;
use super::plan::PlanReport;
use super::table::printable;
use crate::cluster::NodeId;
use crate::formats::Handles;
use crate::plan::{Goal, Step};

/// The plan as lines for a shell. Where there is none, and where nothing moves, all of them are comments.
pub fn plan_commands(report: &PlanReport<'_>, handles: &Handles) -> String {
    let mut script = Script::default();
    script.comment(&report.headline());
    script.comment("slotwise has carried out none of this. Read it before you do, step by step.");
    if report.plan.feasible != Some(true) {
        report.plan.relax.iter().for_each(|relaxation| script.comment(&report.relaxation(relaxation)));
        return script.text;
    }
    match handles {
        Handles::Pods(_) => kubernetes::write(&mut script, report, handles),
        Handles::Jobs(_) => slurm::write(&mut script, report, handles),
    }
    script.text
}

/// Lines in the making.
#[derive(Debug, Default)]
struct Script {
    text: String,
}

impl Script {
    /// Appends a comment, on one line whatever is in it.
    fn comment(&mut self, text: &str) {
        self.text += &format!("# {}\n", printable(text));
    }

    /// Appends a blank line and a comment: what follows is another part.
    fn part(&mut self, text: &str) {
        self.text.push('\n');
        self.comment(text);
    }

    /// Appends a command, each word safe in a shell.
    fn command(&mut self, words: &[&str]) {
        self.text += &line(words);
        self.text.push('\n');
    }
}

/// The words of a command, each as a shell must read it to get it back.
fn line(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" ")
}

/// A word in single quotes, unless every character of it stands for itself.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// An instance in a comment, with where it goes.
fn told(report: &PlanReport<'_>, step: &Step) -> String {
    let cluster = report.cluster;
    let (job, instance) = (cluster.job_name(step.job), cluster.position(step.instance));
    let (from, to) = (cluster.node_name(step.from), cluster.node_name(step.to));
    format!("{job}, instance {instance}, {}: {from} to {to}", counted(step.gpus.count_ones(), "GPU"))
}

/// Says what there is room for then, node by node.
fn room(script: &mut Script, report: &PlanReport<'_>) {
    let (cluster, place) = (report.cluster, &report.plan.place);
    let name = |node: NodeId| cluster.node_name(node);
    match report.goal {
        Goal::Job(job) => {
            script.part(&format!("Then there is room for {}, an instance a line:", cluster.job_name(job)));
            place.iter().for_each(|&(node, gpus)| {
                script.comment(&format!("  {}, {}", name(node), counted(gpus.count_ones(), "GPU")))
            });
        }
        Goal::FreeNodes(_) | Goal::FreeRegion(_) => {
            script.part("Then these nodes are free:");
            place.iter().for_each(|&(node, _)| script.comment(&format!("  {}", name(node))));
        }
        Goal::LeastPartial => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_each_word_back() {
        for (word, expected) in [
            ("pod/a-0.b", "pod/a-0.b"),
            ("--namespace=ml", "--namespace=ml"),
            ("", "''"),
            ("a b", "'a b'"),
            ("a'; rm -rf $HOME #", r"'a'\''; rm -rf $HOME #'"),
            ("~", "'~'"),
            ("*", "'*'"),
            ("ä", "'ä'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn a_comment_stays_one() {
        let mut script = Script::default();
        script.comment("a\nreboot\r\u{1b}");
        assert_eq!(script.text, "# a\\nreboot\\r\\u{1b}\n");
    }
}
