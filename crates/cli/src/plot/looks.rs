//! The colour and marker of each lock.

use plotters::style::RGBColor;

/// The corners of a marker, relative to its point.
pub type Marker = &'static [(i32, i32)];

/// Colours that colour-blind people can tell apart (Okabe and Ito), each with a marker for readers
/// who see no colours.
const LOOKS: [(RGBColor, Marker); 8] = [
    (
        RGBColor(0x00, 0x72, 0xb2),
        &[
            (-2, -5),
            (2, -5),
            (5, -2),
            (5, 2),
            (2, 5),
            (-2, 5),
            (-5, 2),
            (-5, -2),
        ],
    ),
    (
        RGBColor(0xd5, 0x5e, 0x00),
        &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    ),
    (RGBColor(0x00, 0x9e, 0x73), &[(0, -5), (5, 4), (-5, 4)]),
    (
        RGBColor(0xcc, 0x79, 0xa7),
        &[(0, -6), (5, 0), (0, 6), (-5, 0)],
    ),
    (RGBColor(0xe6, 0x9f, 0x00), &[(0, 5), (5, -4), (-5, -4)]),
    (
        RGBColor(0x56, 0xb4, 0xe9),
        &[(-5, -5), (5, 5), (5, -5), (-5, 5)],
    ),
    (
        RGBColor(0x55, 0x55, 0x55),
        &[(-2, -5), (2, -5), (2, 5), (-2, 5)],
    ),
    (
        RGBColor(0x8c, 0x56, 0x4b),
        &[(-5, -2), (5, -2), (5, 2), (-5, 2)],
    ),
];

/// The colour and marker of the nth lock. A colour that repeats has another marker.
pub fn look(n: usize) -> (RGBColor, Marker) {
    let (colour, _) = LOOKS[n % LOOKS.len()];
    let (_, marker) = LOOKS[(n + n / LOOKS.len()) % LOOKS.len()];
    (colour, marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_look_alike() {
        let looks: Vec<_> = (0..16).map(look).collect();
        for (n, one) in looks.iter().enumerate() {
            assert!(!looks[..n].contains(one), "{n}");
        }
    }
}
