//! What is looked at on each page, in every look: nothing wider than the screen, nothing axe-core objects to, no script of
//! its own, the word that it is a sandbox, and a picture. And by keyboard: every control has its turn, and is seen to.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ENGLISH;
use super::driver::{self, Scripts};
use super::person::{Person, TAB};
use super::storefront::Storefront;
use crate::harness::skip;

/// Widths in pixels: of a phone and of a desktop.
const PHONE: u32 = 390;
const DESKTOP: u32 = 1280;
/// The lowest screen, in pixels.
const LOWEST: u64 = 900;

/// Gives what axe-core objects to, and where it could not judge a contrast. Everything it knows and is meant for all is on;
/// the size of targets is not by itself. Its argument narrows that down.
const JUDGE: &str = "const done = arguments[arguments.length - 1];
    const told = list => list.map(one => one.id + ': ' + one.nodes.map(node => node.target + ' ' + (node.failureSummary || '')));
    const rules = { 'target-size': { enabled: true } };
    axe.run(document, { rules, resultTypes: ['violations', 'incomplete'], ...arguments[0] }).then(
        found => done(told(found.violations).concat(told(found.incomplete.filter(one => one.id === 'color-contrast')))),
        error => done(['' + error]));";

/// Gives the facts of a page that are the same in every look.
const FACTS: &str = "const all = [...document.querySelectorAll('*')];
    return {
        lang: document.documentElement.lang,
        title: document.title,
        heads: [...document.querySelectorAll('h1')].map(head => head.innerText),
        scripts: document.scripts.length,
        handlers: all.flatMap(one => one.getAttributeNames()).filter(name => name.startsWith('on')),
        note: (document.querySelector('aside') || document.body).innerText,
        main: (document.querySelector('main') || document.body).innerText,
    };";

/// Prepares for Tab: notes each control that gets the focus, by its number, and whether that is seen. Gives how many
/// controls there are; of radio buttons the chosen one stands for all, or the first where none is.
const LISTEN: &str = "const stands = one => one === (document.querySelector(`input[name='${one.name}']:checked`) || document.querySelector(`input[name='${one.name}']`));
    const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
        .filter(one => one.type !== 'hidden' && !one.disabled && one.checkVisibility() && (one.type !== 'radio' || stands(one)));
    window.noted = [];
    document.addEventListener('focusin', event => {
        const style = getComputedStyle(event.target);
        const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
        window.noted.push([all.indexOf(event.target), seen]);
    });
    return all.length;";

/// What every page says, and how its language is called.
pub(super) struct Words {
    pub(super) lang: &'static str,
    pub(super) languages: &'static str,
    note: [&'static str; 2],
}

impl Words {
    /// What a page is looked at in, and what axe-core is asked for then, if anything. Looks are what these tests cost: so
    /// each language sees both widths and both schemes, and what one sees light on a phone the other sees dark. In the
    /// dark nothing but the colours changes, and they are the same in both languages.
    fn looks(&self, care: Care) -> Vec<(u32, &'static str, Option<Value>)> {
        let all = Some(json!({}));
        let colours = Some(json!({ "rules": {}, "runOnly": ["color-contrast"] }));
        match (self.lang, care) {
            ("en", Care::Whole) => vec![(PHONE, "light", all), (DESKTOP, "dark", colours)],
            ("en", Care::Glance) => vec![(PHONE, "light", all)],
            (_, Care::Whole) => vec![(DESKTOP, "light", all), (PHONE, "dark", None)],
            (_, Care::Glance) => vec![(DESKTOP, "dark", all)],
        }
    }
}

pub(super) const IN_ENGLISH: Words = Words {
    lang: "en",
    languages: ENGLISH,
    note: [
        "This is a sandbox: an imitation of the payment service",
        "Of the status names only new is the service's own; all the others are this sandbox's invention.",
    ],
};

pub(super) const IN_RUSSIAN: Words = Words {
    lang: "ru",
    languages: super::RUSSIAN,
    note: [
        "Это песочница: имитация платёжного сервиса",
        "Из названий статусов лишь new принадлежит самому сервису, остальные придуманы песочницей.",
    ],
};

/// How closely a page is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// In two looks for each language, and by keyboard.
    Whole,
    /// In one look for each language: there is little on it that is not on a page that is looked at as a whole.
    Glance,
}

/// Somebody who looks closely.
pub(super) struct Inspector {
    pub(super) person: Person,
    words: Words,
    pictures: PathBuf,
}

impl Inspector {
    #[track_caller]
    pub(super) fn new(words: Words) -> Self {
        let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
        fs::create_dir_all(&pictures).expect("a directory");
        // Past the test's own output, so that it is seen where nothing fails. Nobody need read it.
        drop(writeln!(
            std::io::stdout(),
            "pictures of the pages in `{}`: {}",
            words.lang,
            pictures.display()
        ));
        let person = Person::reading(words.languages, Scripts::On);
        // Beside each page's own content, not in it.
        let axe = fs::read_to_string(driver::axe()).expect("axe-core");
        person.command(
            "Page.addScriptToEvaluateOnNewDocument",
            &json!({ "source": axe }),
        );
        Self {
            person,
            words,
            pictures,
        }
    }

    /// Everything about the page that is open; its title begins with `title`.
    #[track_caller]
    pub(super) fn inspect(&self, name: &str, title: &str, care: Care) {
        let wrong = self.faults_of_content(title);
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        let lang = self.words.lang;
        for (width, scheme, narrow) in self.words.looks(care) {
            self.wear(width, scheme);
            let file = format!("{name}-{width}-{scheme}-{lang}.png");
            self.person.shoot(&self.pictures.join(file));
            let wrong = self.faults_of_look(narrow.as_ref());
            assert!(
                wrong.is_empty(),
                "{name} {width} {scheme} {lang}: {wrong:#?}"
            );
        }
        // The order of the focus has no language.
        if care == Care::Whole && lang == "ru" {
            let wrong = self.faults_of_keyboard();
            assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        }
        let strays = self.person.strays();
        assert!(strays.is_empty(), "{name}: {strays:?}");
    }

    /// Every look and the keyboard, for a page that is not the sandbox's.
    #[track_caller]
    pub(super) fn look_over(&self, name: &str) {
        let looks = [PHONE, DESKTOP].map(|width| ["light", "dark"].map(|scheme| (width, scheme)));
        for (width, scheme) in looks.into_iter().flatten() {
            self.wear(width, scheme);
            let file = format!("{name}-{width}-{scheme}.png");
            self.person.shoot(&self.pictures.join(file));
            let wrong = self.faults_of_look(Some(&json!({})));
            assert!(wrong.is_empty(), "{name} {width} {scheme}: {wrong:#?}");
        }
        let wrong = self.faults_of_keyboard();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        let strays = self.person.strays();
        assert!(strays.is_empty(), "{name}: {strays:?}");
    }

    /// Gives the screen this width, and all the height that the page needs: so a picture shows all of it.
    #[track_caller]
    fn wear(&self, width: u32, scheme: &str) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.person.command("Emulation.setEmulatedMedia", &media);
        let resize = |height: u64| {
            let is_phone = width == PHONE;
            let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone });
            self.person
                .command("Emulation.setDeviceMetricsOverride", &size);
        };
        resize(LOWEST);
        let tall = "return document.documentElement.scrollHeight";
        let tall = self.person.script(tall, &[]).as_u64();
        resize(tall.unwrap_or(0).max(LOWEST));
    }

    #[track_caller]
    fn faults_of_content(&self, title: &str) -> Vec<String> {
        let facts = self.person.script(FACTS, &[]);
        let fact = |name: &str| facts.get(name).cloned().unwrap_or_default();
        let note = fact("note").as_str().unwrap_or_default().replace('\n', " ");
        let main = fact("main").as_str().unwrap_or_default().to_owned();
        let is_russian = |text: &str| text.chars().any(|letter| ('а'..='я').contains(&letter));
        let mut wrong = Vec::new();
        let mut look = |is_good: bool, what: String| {
            if !is_good {
                wrong.push(what);
            }
        };
        look(
            fact("lang") == self.words.lang,
            format!("lang {}", fact("lang")),
        );
        let whole = format!("{title} · tilld sandbox");
        look(fact("title") == whole, format!("title {}", fact("title")));
        let heads = fact("heads");
        look(
            heads.as_array().is_some_and(|all| all.len() == 1),
            format!("heads {heads}"),
        );
        look(fact("scripts") == 0, "a script".to_owned());
        look(
            fact("handlers") == json!([]),
            format!("{}", fact("handlers")),
        );
        for words in self.words.note {
            look(
                note.contains(words),
                format!("`{words}` is missing in `{note}`"),
            );
        }
        look(
            is_russian(&main) || self.words.lang == "en",
            format!("no Russian in {main}"),
        );
        wrong
    }

    #[track_caller]
    fn faults_of_look(&self, narrow: Option<&Value>) -> Vec<String> {
        let judged =
            narrow.map(|narrow| self.person.slow_script(JUDGE, std::slice::from_ref(narrow)));
        let found = judged
            .iter()
            .flat_map(|found| found.as_array().expect("a list"));
        let mut wrong: Vec<String> = found.map(Value::to_string).collect();
        let beyond =
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        let beyond = self.person.script(beyond, &[]);
        if beyond != 0 {
            wrong.push(format!("{beyond} pixels are beyond the screen"));
        }
        wrong
    }

    #[track_caller]
    fn faults_of_keyboard(&self) -> Vec<String> {
        let count = self.person.script(LISTEN, &[]).as_u64().expect("a number");
        let keys = vec![TAB; usize::try_from(count).expect("a count")];
        self.person.press(&keys);
        let noted = self.person.script("return window.noted", &[]);
        let wanted: Vec<Value> = (0..count).map(|number| json!([number, true])).collect();
        if noted == Value::from(wanted) {
            return Vec::new();
        }
        vec![format!("{count} controls, the focus was at {noted}")]
    }
}

/// A check that never fails is none: a page with everything that is looked for.
#[test]
fn what_is_wrong_with_a_page_is_found() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    let site = Storefront::open(
        "<style>a:focus { outline: none }</style><p style=\"color: #aaa; width: 3000px\">pale and wide</p>\
        <img src=\"http://shop.example/beyond.png\"><a href=\"/next\">next</a><i tabindex=\"2\" onclick=\"0\">i</i>\
        <script>console.error('something')</script>",
    );
    let inspector = Inspector::new(IN_RUSSIAN);
    inspector.person.open(&site.page("bad"));
    inspector.wear(PHONE, "light");
    let content = inspector.faults_of_content("Title").join("\n");
    for part in [
        "lang",
        "title",
        "a script",
        "onclick",
        "is missing in",
        "no Russian",
    ] {
        assert!(content.contains(part), "{part}: {content}");
    }
    let look = inspector.faults_of_look(Some(&json!({}))).join("\n");
    let colours = json!({ "rules": {}, "runOnly": ["color-contrast"] });
    let dark = inspector.faults_of_look(Some(&colours));
    assert_eq!(dark.len(), 1 + 1, "the contrast and the width: {dark:?}");
    for part in [
        "color-contrast",
        "image-alt",
        "region",
        "tabindex",
        "beyond the screen",
    ] {
        assert!(look.contains(part), "{part}: {look}");
    }
    let keyboard = inspector.faults_of_keyboard().join("\n");
    assert!(keyboard.contains("[1,"), "{keyboard}");
    assert!(keyboard.contains("false"), "{keyboard}");
    assert_eq!(
        inspector.person.strays(),
        ["http://shop.example/beyond.png"]
    );
    let complaints = inspector.person.complaints().join("\n");
    assert!(complaints.contains("something"), "{complaints}");
}
