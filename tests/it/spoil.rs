//! Makes valid input invalid, or nearly.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Spoils an input in up to four places: cuts it off, changes or removes a byte, puts one of these words or a piece of its
/// own somewhere.
pub(crate) fn spoil(bytes: &mut Vec<u8>, words: &[&str], random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(1..5) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..5) {
            0 => bytes.truncate(at + 1),
            1 => bytes[at] = random.random(),
            2 => drop(bytes.remove(at)),
            3 => drop(bytes.splice(at..at, words[random.random_range(0..words.len())].bytes())),
            _ => {
                let piece: Vec<u8> = bytes[at..].iter().copied().take(300).collect();
                let to = random.random_range(0..=bytes.len());
                drop(bytes.splice(to..to, piece));
            }
        }
    }
}
