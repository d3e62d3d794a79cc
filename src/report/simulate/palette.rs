//! Colours: those that are drawn, which suit a white page, and what a dark page shows in their place.

use plotters::style::RGBColor;

/// A colour on a light page, and its counterpart on a dark one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) struct Colour {
    light: u32,
    dark: u32,
}

/// Text and axes.
pub(super) const INK: Colour = Colour { light: 0x24_29_2F, dark: 0xD0_D7_DE };
/// Lines of a grid.
pub(super) const GRID: Colour = Colour { light: 0xDF_E3_E8, dark: 0x30_36_3D };
/// A bound.
pub(super) const BOUND: Colour = Colour { light: 0xCF_22_2E, dark: 0xFF_7B_72 };

/// One after another for the runs of a comparison; a longer one begins anew.
pub(super) const RUNS: [Colour; 20] = [
    Colour { light: 0x0B_6B_CB, dark: 0x4D_AB_F7 },
    Colour { light: 0xD9_48_0F, dark: 0xFF_92_2B },
    Colour { light: 0x2B_8A_3E, dark: 0x69_DB_7C },
    Colour { light: 0x9C_36_B5, dark: 0xDA_77_F2 },
    Colour { light: 0x0C_85_99, dark: 0x3B_C9_DB },
    Colour { light: 0x9A_6B_00, dark: 0xFC_C4_19 },
    Colour { light: 0xC2_25_5C, dark: 0xF7_83_AC },
    Colour { light: 0x5C_63_6A, dark: 0xAD_B5_BD },
    Colour { light: 0x5F_3D_C4, dark: 0x97_75_FA },
    Colour { light: 0x5C_94_0D, dark: 0xA9_E3_4B },
    Colour { light: 0x6B_A8_E5, dark: 0xA5_D8_FF },
    Colour { light: 0xEE_9A_6A, dark: 0xFF_D8_A8 },
    Colour { light: 0x7A_BF_87, dark: 0xB2_F2_BB },
    Colour { light: 0xC9_8A_D6, dark: 0xEE_BE_FA },
    Colour { light: 0x66_B5_C2, dark: 0x99_E9_F2 },
    Colour { light: 0xC9_A2_4A, dark: 0xFF_EC_99 },
    Colour { light: 0xE0_83_A4, dark: 0xFC_C2_D7 },
    Colour { light: 0x9A_A1_A8, dark: 0xDE_E2_E6 },
    Colour { light: 0x9E_8A_DE, dark: 0xD0_BF_FF },
    Colour { light: 0x9D_BE_66, dark: 0xD8_F5_A2 },
];

/// How full a node is: empty, up to a quarter, a half, three quarters, less than full, full, and without a working GPU.
pub(super) const NODES: [Colour; 7] = [
    Colour { light: 0xE9_EC_EF, dark: 0x2B_30_37 },
    Colour { light: 0xFF_E0_B8, dark: 0x6B_45_14 },
    Colour { light: 0xFF_C0_6E, dark: 0x9C_5F_12 },
    Colour { light: 0xFB_8B_24, dark: 0xD4_79_14 },
    Colour { light: 0xC8_54_09, dark: 0xFF_A8_42 },
    Colour { light: 0x2F_6D_A8, dark: 0x3F_7F_BF },
    Colour { light: 0x86_8E_96, dark: 0x6C_75_7D },
];

impl Colour {
    /// What is drawn.
    pub(super) fn rgb(self) -> RGBColor {
        let [_, red, green, blue] = self.light.to_be_bytes();
        RGBColor(red, green, blue)
    }

    /// What is drawn, as an SVG says it.
    pub(super) fn hex(self) -> String {
        format!("#{:06X}", self.light)
    }
}

/// The colour of the run at a position.
pub(in crate::report) fn run(position: usize) -> Colour {
    RUNS[position % RUNS.len()]
}

/// Rules of a style sheet: the colour of whatever names one, and on a dark page the dark colours in the place of those
/// that are drawn.
pub(super) fn rules() -> String {
    let all = || [INK, GRID, BOUND].into_iter().chain(RUNS).chain(NODES);
    let mut rules = String::new();
    for colour in all() {
        let light = colour.hex();
        rules += &format!("[data-colour=\"{light}\"]{{--colour:{light}}}\n");
    }
    rules += "@media (prefers-color-scheme: dark){\n";
    for colour in all() {
        let (light, dark) = (colour.hex(), format!("#{:06X}", colour.dark));
        rules += &format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
        rules += &format!("[data-colour=\"{light}\"]{{--colour:{dark}}}\n");
    }
    rules + "}\n"
}
