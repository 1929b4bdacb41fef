//! Judges the litmus tests of crates/check/litmus by all models.
use super::*;

#[test]
fn smoke() {
    let dir = std::env::var("LITMUS").unwrap();
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "litmus")) {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let start = std::time::Instant::now();
        match LitmusFile::parse(&text, name) {
            Err(e) => println!("REFUSED {e}"),
            Ok(test) => match test.judge(Model::Lkmm) {
                Err(e) => println!("REFUSED {e}"),
                Ok(a) => println!("{} {name} {} {:?} {} {} {} {:?}", if Some(a.verdict()) == test.documented(Model::Lkmm) {"ok"} else {"DIFFERS"}, a.verdict(), test.documented(Model::Lkmm), a.satisfying, a.others, a.has_race, start.elapsed()),
            },
        }
    }
}
