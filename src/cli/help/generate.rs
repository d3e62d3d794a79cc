//! The help of `generate`.

pub(in super::super) const GENERATE_CLUSTER: &str = "\
Examples:
  slotwise generate cluster --gpus 10000 --busy 90 --scattered --out c.json
  slotwise generate cluster --gpus 800 | slotwise audit --cluster -";

pub(in super::super) const GENERATE_QUEUE: &str = "\
Jobs arrive and leave so that they ask for --load percent of --gpus at a time.
With --from they are those of a trace, in random order and repeated until they
ask for --inflate percent of --gpus; none leaves.

Examples:
  slotwise generate queue --jobs 5000 --gpus 10000 --seed 7 --out q.jsonl
  slotwise generate queue --mix hard --no-removals --within-rack 20
  slotwise generate queue --from openb:pods.csv --gpus 6212 --inflate 130";

pub(in super::super) const GENERATE_TRACE: &str = "\
Jobs arrive at a rate that makes them ask for --load percent of --gpus on
average; durations have a heavy tail, from seconds to a week. poisson: the rate
is the same all the time. diurnal: it follows the hour, from 25 % of the mean at
night to 175 % in the afternoon. bursts: calm times (3 h on average) at half the
mean, bursts (20 min on average) at 5.5 times the mean. --mix gfs and venus have
the sizes of table 1 of COMPASS-ABS. The arrivals change no job but its time.

Examples:
  slotwise generate trace --arrivals diurnal --jobs 90000 --out month.jsonl
  slotwise generate trace --jobs 20000 --gpus 2000 --mix venus --out t.jsonl
  slotwise generate trace | slotwise simulate --trace - --nodes 125";
