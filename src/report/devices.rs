//! What can evaluate here.

use serde::Serialize;

use super::json::append_line;
use super::table::{Align, Rows, wrapped};
use crate::evaluate::{DeviceInfo, Devices};

/// The list as one document.
///
/// # Errors
/// As [`append_line`].
pub fn devices_json(out: &mut Vec<u8>, devices: &Devices) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Device<'a> {
        backend: &'a str,
        name: &'a str,
        usable: bool,
        software: bool,
        auto: bool,
        why: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        auto: &'a str,
        why_auto: &'a str,
        devices: Vec<Device<'a>>,
    }
    let list = devices.all.iter().enumerate().map(|(at, device)| Device {
        backend: device.backend,
        name: &device.name,
        usable: device.usable,
        software: device.software,
        auto: at == devices.auto,
        why: device.why.as_deref(),
    });
    let auto = devices.chosen().map_or("", |device| device.backend);
    append_line(out, &Document { auto, why_auto: &devices.why_auto, devices: list.collect() })
}

/// What is left of a line of 80 characters for the device or the reason.
const TEXT: usize = 56;

/// The list as a table, and below it what `auto` takes and why.
pub fn devices_table(devices: &Devices) -> String {
    let mut rows = Rows::new(&[
        ("BACKEND", Align::Left),
        ("USABLE", Align::Left),
        ("AUTO", Align::Left),
        ("DEVICE OR REASON", Align::Left),
    ]);
    for (at, device) in devices.all.iter().enumerate() {
        let usable = if device.usable { "yes" } else { "no" };
        let auto = if at == devices.auto { "yes" } else { "" };
        let mut text = wrapped(&describe(device), TEXT).into_iter();
        rows.push([device.backend, usable, auto, &text.next().unwrap_or_default()]);
        text.for_each(|line| rows.push(["", "", "", &line]));
    }
    let auto = devices.chosen().map_or("", |device| device.backend);
    let why = wrapped(&format!("--backend auto takes {auto}: {}.", devices.why_auto), 80).join("\n");
    format!("{}\n{why}\n", rows.text())
}

fn describe(device: &DeviceInfo) -> String {
    let name = if device.software { format!("{} (software)", device.name) } else { device.name.clone() };
    match &device.why {
        None => name,
        Some(why) if name.is_empty() => why.clone(),
        Some(why) => format!("{name}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_stay_within_80_columns() {
        let device = |backend, name: &str, why: Option<&str>| DeviceInfo {
            backend,
            name: name.to_owned(),
            usable: why.is_none(),
            software: backend == "wgpu",
            why: why.map(str::to_owned),
        };
        let why = "the driver is of version 11.4, expected 12.0 or newer, which compute capability 7.5 needs to load";
        let all = vec![
            device("cuda", "", Some(why)),
            device("wgpu", "llvmpipe (LLVM 15.0.6, 256 bits)", None),
            device("cpu", "2 threads", None),
        ];
        let devices = Devices { all, auto: 2, why_auto: "no GPU can be used here".to_owned() };
        let text = devices_table(&devices);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("cpu      yes     yes   2 threads\n"), "{text}");
        assert!(text.contains("256 bits) (software)\n") && text.contains("auto takes cpu: no GPU"), "{text}");
    }
}
