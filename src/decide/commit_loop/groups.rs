//! What the commit loop does with jobs of several groups: all groups start together or not at all.

use super::{CommitLoop, MOST_CPU_ONLY};
use crate::anchor::{self, Checkpoint, Rules, State, Transaction};
use crate::cluster::{GroupedJob, JobId, Within};
use crate::decide::decision::Status;
use crate::decide::groups::{Fit, Groups, Hosts, Refusal};
use crate::decide::need::Needs;
use crate::decide::placer::Placer;
use crate::decide::policy::random::Draws;
use crate::decide::policy::{Method, Order};
use crate::decide::ranking::Window;
use crate::decide::region::RegionRoom;
use crate::decide::scorer::Scorer;
use crate::decide::why::Why;

impl CommitLoop<'_> {
    /// Decides where all groups of a job go.
    #[cold]
    #[inline(never)]
    pub(super) fn submit_groups(&mut self, job: GroupedJob, index: usize) -> Status {
        match self.place_groups(job, index) {
            None => Status::Placed,
            Some(Refusal { why, proven }) => {
                self.decision.proven = Some(proven);
                Status::Blocked(why)
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn remove_groups(&mut self, job: GroupedJob) -> Status {
        let groups: Vec<JobId> = job.jobs().collect();
        self.remove(&groups)
    }

    /// Places all groups as the policy does by itself; else says why not. Nobody makes room for several groups.
    fn place_groups(&mut self, job: GroupedJob, index: usize) -> Option<Refusal> {
        self.needs.resolve_groups(self.state.cluster(), job);
        let groups = Groups::new(self.state.cluster(), &self.needs, job, self.group_steps).only_in(self.region);
        let method = self.options.policy.method();
        if let Some(refusal) = refused_at_once(&groups, self.state, method) {
            return Some(refusal);
        }
        let draws = Draws::new(self.options.seed, index);
        let mut hands = Hands {
            placer: &mut self.placer,
            scorer: &mut self.scorer,
            needs: &self.needs,
            unranked: Window::default(),
            method,
            draws,
        };
        let orders = groups.orders();
        let mut transaction = self.state.begin();
        if !transaction.start_groups(job) {
            return Some(TOO_MANY);
        }
        let fit = match method {
            Method::Anchor(variant) => {
                let rules = Rules { region: self.region, ..self.options.rules(variant) };
                if anchor::place_groups(&mut transaction, job, &orders, &rules) {
                    None
                } else {
                    drop(transaction);
                    // Where they fit as things are, it is Σ that refuses them.
                    let space = Refusal { why: Why::Space, proven: false };
                    return Some(groups.blocked(self.state).unwrap_or(space));
                }
            }
            Method::Ordered(_) | Method::Random | Method::Scored(..) => {
                hands.place_all(&mut transaction, &groups, &orders).err()
            }
        };
        if let Some(fit) = fit {
            drop(transaction);
            return groups.refusal(self.state, &fit).or(Some(TOO_MANY));
        }
        self.decision.keep_starts(&mut self.window, transaction, job.jobs());
        job.jobs().for_each(|group| self.note_started(group));
        None
    }
}

/// More instances than can be numbered: that they do not fit is not said.
const TOO_MANY: Refusal = Refusal { why: Why::Constraint, proven: false };

/// Why the groups are blocked, as far as that shows before they are tried, and their instances get numbers.
fn refused_at_once(groups: &Groups<'_>, state: &State, method: Method) -> Option<Refusal> {
    let proven = |why| Refusal { why, proven: true };
    let by_counts = match method {
        // What moves instances can mend fragmentation.
        Method::Anchor(_) if groups.lacks_capacity(state) => Some(proven(Why::Capacity)),
        // No move makes room for CPU and memory alone.
        Method::Anchor(_) if groups.one_alone(state, false).is_some() => groups.blocked(state),
        Method::Anchor(_) => None,
        Method::Ordered(_) | Method::Random | Method::Scored(..) => groups.refused_at_once(state),
    };
    by_counts.or_else(|| (groups.cpu_only_instances() > u64::from(MOST_CPU_ONLY)).then_some(TOO_MANY))
}

/// What places one group after the other, without moves.
struct Hands<'a> {
    placer: &'a mut Placer,
    scorer: &'a mut Option<Scorer>,
    needs: &'a Needs,
    /// No ranking: it would not know of the groups that were just placed.
    unranked: Window,
    method: Method,
    draws: Draws,
}

impl Hands<'_> {
    /// Places all groups: in the first order that does, else as a search finds. What is known of a place otherwise.
    fn place_all(
        &mut self,
        transaction: &mut Transaction<'_>,
        groups: &Groups<'_>,
        orders: &[Vec<JobId>],
    ) -> Result<(), Fit> {
        let fit = match groups.within {
            None => {
                if self.in_some_order(transaction, orders, None) {
                    return Ok(());
                }
                groups.fit_anywhere(transaction.state())
            }
            Some(within) => {
                let regions = self.regions(transaction.state(), groups, within);
                for &number in &regions {
                    if self.in_some_order(transaction, orders, Some((within, number))) {
                        return Ok(());
                    }
                }
                groups.fit_in(transaction.state(), within, regions)
            }
        };
        let Fit::Found(hosts) = fit else { return Err(fit) };
        let start = transaction.checkpoint();
        if carry_out(transaction, &hosts) {
            self.tell(transaction);
            return Ok(());
        }
        debug_assert!(false, "the search put an instance where it does not fit");
        self.take_back(transaction, start);
        Err(Fit::Unknown)
    }

    /// Places all groups in the first order that does. False, with nothing changed, if none does.
    fn in_some_order(
        &mut self,
        transaction: &mut Transaction<'_>,
        orders: &[Vec<JobId>],
        region: Option<(Within, usize)>,
    ) -> bool {
        orders.iter().any(|order| {
            let start = transaction.checkpoint();
            let placed = order.iter().all(|&group| self.place(transaction, group, region));
            if !placed {
                self.take_back(transaction, start);
            }
            placed
        })
    }

    fn place(&mut self, transaction: &mut Transaction<'_>, group: JobId, region: Option<(Within, usize)>) -> bool {
        let Self { placer, scorer, needs, unranked, method, draws } = self;
        match (*method, region) {
            (Method::Ordered(order), None) => placer.place_in_order(transaction, group, needs, unranked, order),
            (Method::Ordered(order), Some(region)) => {
                let need = needs.of(transaction.cluster().job(group).request());
                placer.fill_region(transaction, group, need, region, order)
            }
            (Method::Random, None) => placer.place_by_lot(transaction, group, needs, draws),
            (Method::Random, Some(region)) => placer.fill_region_by_lot(transaction, group, needs, region, draws),
            (Method::Scored(..), region) => {
                scorer.as_mut().is_some_and(|scorer| scorer.place_in(transaction, group, needs, region).is_some())
            }
            // It places all groups itself, for it may have to compact first.
            (Method::Anchor(_), _) => false,
        }
    }

    /// The regions that could take each group alone, in the policy's order.
    fn regions(&mut self, state: &State, groups: &Groups<'_>, within: Within) -> Vec<usize> {
        let mut regions = groups.able_regions(state, within);
        let order = match self.method {
            Method::Random => {
                for at in (1..regions.len()).rev() {
                    regions.swap(at, self.draws.below(at as u64 + 1) as usize);
                }
                return regions;
            }
            Method::Ordered(order) => order,
            Method::Scored(..) | Method::Anchor(_) => Order::FewestFree,
        };
        regions.sort_by_key(|&number| {
            RegionRoom::unasked(state, &state.regions(within)[number]).key(order, number as u32)
        });
        regions
    }

    fn take_back(&mut self, transaction: &mut Transaction<'_>, to: Checkpoint) {
        self.tell(transaction);
        transaction.rollback(to);
    }

    /// Tells who keeps scores which nodes changed, or are about to change back.
    fn tell(&mut self, transaction: &Transaction<'_>) {
        if let Some(scorer) = self.scorer.as_mut() {
            scorer.taken_back(transaction);
        }
    }
}

/// Puts every instance on its node.
fn carry_out(transaction: &mut Transaction<'_>, hosts: &Hosts) -> bool {
    hosts.iter().all(|(group, nodes)| {
        let instances = transaction.cluster().instances_of(*group);
        debug_assert_eq!(instances.len(), nodes.len(), "a node for each instance");
        instances.zip(nodes).all(|(instance, &node)| transaction.take_lowest(instance, node).is_ok())
    })
}
