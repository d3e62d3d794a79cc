//! Gangs whose parts start one by one, as the pods of Kubernetes do: who runs and who waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::cluster::Within;
use crate::formats::{GangSpec, WaitSpec};

/// What a job that waits asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asks {
    /// Its GPUs.
    pub gpus: u8,
    /// Its milli-cores.
    pub cpu_milli: u32,
    /// Its MiB.
    pub memory_mib: u32,
}

/// A gang.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gang {
    /// How many parts must be there for it to start, if anybody said so.
    pub size: Option<u32>,
    /// What all of its parts must be in.
    pub within: Option<Within>,
    /// Somebody has told of the gang itself, which counts more than what its parts say.
    pub is_told: bool,
    /// The parts that run.
    pub running: BTreeSet<Arc<str>>,
    /// The parts that wait.
    pub waiting: BTreeMap<Arc<str>, Asks>,
}

/// What is known of gangs, and of the jobs that wait.
#[derive(Debug, Default)]
pub struct Gangs {
    gangs: FxHashMap<Arc<str>, Gang>,
    /// Of each job that is a part of a gang or waits: the gang.
    jobs: FxHashMap<Arc<str>, Option<Arc<str>>>,
    /// Gangs of which some parts run and some wait.
    started: BTreeSet<Arc<str>>,
    /// Jobs that wait and are alone.
    alone: BTreeMap<Arc<str>, Asks>,
}

/// What a batch of edits says, before it is known whether all of it is possible.
#[derive(Debug)]
pub(super) struct News<'g> {
    known: &'g Gangs,
    list: Vec<Tiding>,
}

/// What is new of a job.
#[derive(Debug)]
pub(super) enum Tiding {
    Started(Box<str>, Option<Box<str>>),
    Waits(Box<WaitSpec>),
    Ended(Box<str>),
    Told(Box<GangSpec>),
}

impl News<'_> {
    pub(super) fn started(&mut self, job: &str, gang: Option<&str>) {
        self.list.push(Tiding::Started(job.into(), gang.map(Into::into)));
    }

    pub(super) fn waits(&mut self, job: &WaitSpec) {
        self.list.push(Tiding::Waits(Box::new(job.clone())));
    }

    pub(super) fn told(&mut self, gang: &GangSpec) {
        self.list.push(Tiding::Told(Box::new(gang.clone())));
    }

    /// Returns whether the job waited, as far as is known.
    pub(super) fn ended(&mut self, job: &str) -> bool {
        let told = self.list.iter().rev().find_map(|tiding| match tiding {
            Tiding::Waits(wait) if wait.job == job => Some(true),
            Tiding::Started(name, _) | Tiding::Ended(name) if **name == *job => Some(false),
            _ => None,
        });
        let waited = told.unwrap_or_else(|| self.known.waits(job));
        self.list.push(Tiding::Ended(job.into()));
        waited
    }

    pub(super) fn done(self) -> Vec<Tiding> {
        self.list
    }
}

impl Gangs {
    /// A gang by its name.
    pub fn find(&self, gang: &str) -> Option<&Gang> {
        self.gangs.get(gang)
    }

    /// The gangs of which some parts run and some wait, by name.
    pub fn started(&self) -> impl Iterator<Item = (&str, &Gang)> {
        self.started.iter().filter_map(|name| Some((&**name, self.gangs.get(name)?)))
    }

    /// Whether a job waits.
    pub fn waits(&self, job: &str) -> bool {
        match self.jobs.get(job) {
            None => false,
            Some(None) => self.alone.contains_key(job),
            Some(Some(gang)) => self.gangs.get(gang).is_some_and(|gang| gang.waiting.contains_key(job)),
        }
    }

    /// How many jobs wait, and the GPUs of them.
    pub fn waiting(&self) -> (usize, u64) {
        let parts = self.gangs.values().flat_map(|gang| gang.waiting.values());
        parts.chain(self.alone.values()).fold((0, 0), |(jobs, sum), asks| (jobs + 1, sum + u64::from(asks.gpus)))
    }

    pub(super) fn news(&self) -> News<'_> {
        News { known: self, list: Vec::new() }
    }

    pub(super) fn learn(&mut self, news: Vec<Tiding>) {
        for tiding in news {
            match tiding {
                Tiding::Started(job, gang) => {
                    self.forget(&job);
                    if let Some(gang) = gang {
                        let (job, gang) = self.enter(&job, &gang);
                        self.gangs.entry(Arc::clone(&gang)).or_default().running.insert(job);
                        self.file(&gang);
                    }
                }
                Tiding::Waits(wait) => {
                    self.forget(&wait.job);
                    let WaitSpec { gpus, cpu_milli, memory_mib, .. } = *wait;
                    let asks = Asks { gpus, cpu_milli, memory_mib };
                    match &wait.gang {
                        None => {
                            let job: Arc<str> = wait.job.as_str().into();
                            self.jobs.insert(Arc::clone(&job), None);
                            self.alone.insert(job, asks);
                        }
                        Some(gang) => {
                            let (job, gang) = self.enter(&wait.job, gang);
                            let known = self.gangs.entry(Arc::clone(&gang)).or_default();
                            known.waiting.insert(job, asks);
                            if !known.is_told {
                                known.size = wait.gang_size.or(known.size);
                            }
                            self.file(&gang);
                        }
                    }
                }
                Tiding::Ended(job) => self.forget(&job),
                Tiding::Told(told) => {
                    let name = self.gangs.get_key_value(told.gang.as_str()).map(|(name, _)| Arc::clone(name));
                    let name = name.unwrap_or_else(|| told.gang.as_str().into());
                    let gang = self.gangs.entry(Arc::clone(&name)).or_default();
                    (gang.size, gang.within) = (told.size, told.within.map(Into::into));
                    gang.is_told = gang.size.is_some() || gang.within.is_some();
                    self.file(&name);
                }
            }
        }
    }

    /// Learns of jobs that were placed here, or ended (false).
    pub(super) fn learn_placed(&mut self, news: Vec<(String, bool)>) {
        for (job, runs) in news {
            let gang = self.jobs.get(job.as_str()).cloned().flatten();
            let gang = gang.filter(|_| runs).map(|gang| Box::from(&*gang));
            self.learn(vec![if runs { Tiding::Started(job.into(), gang) } else { Tiding::Ended(job.into()) }]);
        }
    }

    fn enter(&mut self, job: &str, gang: &str) -> (Arc<str>, Arc<str>) {
        let gang = self.gangs.get_key_value(gang).map_or_else(|| gang.into(), |(name, _)| Arc::clone(name));
        let job: Arc<str> = job.into();
        self.jobs.insert(Arc::clone(&job), Some(Arc::clone(&gang)));
        (job, gang)
    }

    fn forget(&mut self, job: &str) {
        match self.jobs.remove(job) {
            None => {}
            Some(None) => _ = self.alone.remove(job),
            Some(Some(name)) => {
                if let Some(gang) = self.gangs.get_mut(&name) {
                    gang.running.remove(job);
                    gang.waiting.remove(job);
                    self.file(&name);
                }
            }
        }
    }

    /// Files a gang where it belongs by now.
    fn file(&mut self, name: &Arc<str>) {
        let Some(gang) = self.gangs.get(name) else { return };
        match (gang.running.is_empty(), gang.waiting.is_empty()) {
            (false, false) => _ = self.started.insert(Arc::clone(name)),
            (true, true) => {
                self.started.remove(name);
                if !gang.is_told {
                    self.gangs.remove(name);
                }
            }
            _ => _ = self.started.remove(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(job: &str, gang: Option<&str>) -> WaitSpec {
        WaitSpec { job: job.into(), gpus: 8, gang: gang.map(Into::into), ..WaitSpec::default() }
    }

    #[test]
    fn a_gang_is_known_as_long_as_it_has_parts() {
        let mut gangs = Gangs::default();
        let tell = |gangs: &mut Gangs, tidings: &mut dyn FnMut(&mut News<'_>)| {
            let mut news = gangs.news();
            tidings(&mut news);
            let news = news.done();
            gangs.learn(news);
        };
        tell(&mut gangs, &mut |news| {
            news.waits(&wait("a", Some("g")));
            news.waits(&wait("b", Some("g")));
            news.waits(&wait("c", None));
        });
        assert_eq!((gangs.waiting(), gangs.started().count()), ((3, 24), 0));
        tell(&mut gangs, &mut |news| news.started("a", Some("g")));
        assert_eq!(gangs.started().map(|(name, gang)| (name, gang.waiting.len())).collect::<Vec<_>>(), [("g", 1)]);
        tell(&mut gangs, &mut |news| {
            assert!(news.ended("b") && !news.ended("b") && !news.ended("a") && news.ended("c"));
        });
        assert_eq!((gangs.waiting(), gangs.gangs.len(), gangs.jobs.len()), ((0, 0), 0, 0));
    }

    #[test]
    fn what_is_told_of_a_gang_stands_before_what_its_parts_say() {
        let mut gangs = Gangs::default();
        let told = |size| Tiding::Told(Box::new(GangSpec { gang: "g".into(), size, within: None }));
        let waits = |size| Tiding::Waits(Box::new(WaitSpec { gang_size: Some(size), ..wait("a", Some("g")) }));
        let mut size = |tiding| {
            gangs.learn(vec![tiding]);
            gangs.find("g").map(|gang| gang.size)
        };
        assert_eq!(size(told(Some(4))), Some(Some(4)), "before any part");
        assert_eq!(size(waits(2)), Some(Some(4)));
        assert_eq!(size(Tiding::Ended("a".into())), Some(Some(4)), "with no part left");
        assert_eq!(size(waits(2)), Some(Some(4)));
        assert_eq!(size(told(None)), Some(None), "nothing is known any more");
        assert_eq!(size(waits(2)), Some(Some(2)));
        assert_eq!(size(Tiding::Ended("a".into())), None);
    }
}
