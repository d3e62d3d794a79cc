//! Lists of hosts as Slurm writes them: `tux[0-3,12,018-020],login1`, also with several brackets in a name.

/// The most hosts that one list may name.
const MOST: u64 = 1 << 16;

/// The most brackets that one name may have.
const MOST_BRACKETS: usize = 8;

/// Calls `host` with every host of a list, in its order. Zeros in front of a number are part of the name.
///
/// # Errors
/// What is wrong with the list.
pub(super) fn each_host(list: &str, mut host: impl FnMut(&str)) -> Result<(), String> {
    let mut left = MOST;
    let mut name = String::new();
    for item in split_outside(list) {
        let item = item.trim();
        if item.is_empty() || item == "(null)" || item == "None" {
            continue;
        }
        if item.matches('[').count() > MOST_BRACKETS {
            return Err(format!("found a host with more than {MOST_BRACKETS} brackets in {list:?}, expected fewer"));
        }
        name.clear();
        expand(item, &mut name, &mut left, &mut host).map_err(|wrong| format!("found the hosts {list:?}, {wrong}"))?;
    }
    Ok(())
}

/// All hosts of a list.
///
/// # Errors
/// As for [`each_host`].
pub(super) fn hosts(list: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    each_host(list, |host| hosts.push(host.to_owned()))?;
    Ok(hosts)
}

/// Appends the first piece of `rest` to `name` in every way, and goes on with what follows it.
fn expand(rest: &str, name: &mut String, left: &mut u64, host: &mut impl FnMut(&str)) -> Result<(), String> {
    let before = name.len();
    let Some((plain, behind)) = rest.split_once('[') else {
        if rest.contains(']') {
            return Err("expected [ before ]".to_owned());
        }
        *left = left.checked_sub(1).ok_or_else(|| format!("expected at most {MOST} of them"))?;
        name.push_str(rest);
        host(name);
        name.truncate(before);
        return Ok(());
    };
    let (ranges, behind) = behind.split_once(']').ok_or("expected ] behind [")?;
    name.push_str(plain);
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (number(first)?, number(last)?);
        if from > to {
            return Err(format!("expected {range:?} the other way round"));
        }
        let width = first.len();
        for n in from..=to {
            let end = name.len();
            name.push_str(&format!("{n:0width$}"));
            expand(behind, name, left, host)?;
            name.truncate(end);
        }
    }
    name.truncate(before);
    Ok(())
}

fn number(digits: &str) -> Result<u64, String> {
    // No number of a host is longer; leading zeros count.
    const LONGEST: usize = 18;
    let plain = !digits.is_empty() && digits.len() <= LONGEST && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = plain.then(|| digits.parse().ok()).flatten();
    number.ok_or_else(|| format!("expected numbers in brackets in place of {digits:?}"))
}

/// The parts between commas that stand outside brackets and parentheses.
pub(super) fn split_outside(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_expanded_in_their_order() {
        for (list, expected) in [
            ("", ""),
            ("(null)", ""),
            ("gpu001", "gpu001"),
            ("tux[0-3,12,018-020],login1", "tux0 tux1 tux2 tux3 tux12 tux018 tux019 tux020 login1"),
            ("r[1-2]n[08-10]", "r1n08 r1n09 r1n10 r2n08 r2n09 r2n10"),
            ("b,a[1]x,b", "b a1x b"),
            ("n[9-10]", "n9 n10"),
        ] {
            assert_eq!(hosts(list).unwrap().join(" "), expected, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in [
            "a[",
            "a]",
            "a[1",
            "a[x]",
            "a[1-]",
            "a[]",
            "a[3-2]",
            "a[0-65536]",
            "a[1-99][1-999]",
            "a[1-9999999999999999999]",
        ] {
            let error = hosts(list).unwrap_err();
            assert!(error.starts_with(&format!("found the hosts {list:?}, expected ")), "{error}");
        }
        assert_eq!(hosts("a[0-65535]").unwrap().len(), 1 << 16);
    }
}
