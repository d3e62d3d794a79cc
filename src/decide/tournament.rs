//! A tournament: keeps one key for each of so many places, and knows the place of the least. Changing a key is O(log n).

/// The keys and who wins.
#[derive(Clone, Debug, Default)]
pub(super) struct Tournament {
    keys: Vec<i64>,
    /// The winner below each inner node of a complete binary tree whose leaves are the places; node 1 is the root.
    winners: Vec<u32>,
}

impl Tournament {
    /// The key of a place that must not win.
    pub(super) const NEVER: i64 = i64::MAX;

    /// With these keys. O(n).
    pub(super) fn new(keys: Vec<i64>) -> Self {
        let leaves = keys.len().next_power_of_two();
        let mut tournament = Self { keys, winners: vec![0; leaves] };
        for at in (1..leaves).rev() {
            tournament.winners[at] = tournament.winner_below(at);
        }
        tournament
    }

    /// The lowest place that has the least key, unless all are `NEVER`.
    pub(super) fn first(&self) -> Option<usize> {
        // With one place there is no inner node, and the winner is that place.
        let winner = self.winners.get(1).map_or(0, |&winner| winner as usize);
        (*self.keys.get(winner)? < Self::NEVER).then_some(winner)
    }

    /// Changes the key of a place.
    pub(super) fn set(&mut self, place: usize, key: i64) {
        if std::mem::replace(&mut self.keys[place], key) == key {
            return;
        }
        let mut at = (self.winners.len() + place) / 2;
        while at > 0 {
            let winner = self.winner_below(at);
            if std::mem::replace(&mut self.winners[at], winner) == winner && winner as usize != place {
                return;
            }
            at /= 2;
        }
    }

    fn winner_below(&self, at: usize) -> u32 {
        let leaves = self.winners.len();
        let player = |at: usize| if at < leaves { self.winners[at] } else { (at - leaves) as u32 };
        let (left, right) = (player(2 * at), player(2 * at + 1));
        let key = |place: u32| self.keys.get(place as usize).copied().unwrap_or(Self::NEVER);
        // The left one is the lower place.
        if key(right) < key(left) { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_lowest_of_the_least(
            keys in prop::collection::vec(0i64..6, 0..40), changes in prop::collection::vec((any::<prop::sample::Index>(), 0i64..7), 0..40),
        ) {
            let key = |key: i64| if key == 5 { Tournament::NEVER } else { key };
            let mut plain: Vec<i64> = keys.into_iter().map(key).collect();
            let mut tournament = Tournament::new(plain.clone());
            let first = |plain: &[i64]| {
                let able = (0..plain.len()).filter(|&place| plain[place] < Tournament::NEVER);
                able.min_by_key(|&place| (plain[place], place))
            };
            prop_assert_eq!(tournament.first(), first(&plain));
            for (place, to) in changes {
                if plain.is_empty() {
                    break;
                }
                let place = place.index(plain.len());
                plain[place] = key(to);
                tournament.set(place, key(to));
                prop_assert_eq!(tournament.first(), first(&plain));
            }
        }
    }
}
