//! Tests which pages count as empty shells. The pages are written in the ways that frameworks and servers write them.

use webfill_document::{Document, Limits};

/// A test case: its name, and a page.
type Case = (&'static str, &'static str);

const SHELLS: &[Case] = &[
    (
        "create-react-app",
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>React App</title><script defer src=/static/js/main.8a1.js></script><link href=/static/css/main.css rel=stylesheet></head><body><noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div></body></html>",
    ),
    (
        "vite",
        "<!doctype html><html><head><title>Vite + React</title><script type=module crossorigin src=/assets/index-4f.js></script></head><body><div id=root></div></body></html>",
    ),
    (
        "vue cli",
        "<!DOCTYPE html><html lang><head><title>shop</title><script defer src=/js/chunk-vendors.js></script><script defer src=/js/app.js></script></head><body><noscript><strong>We're sorry but shop doesn't work properly without JavaScript enabled. Please enable it to continue.</strong></noscript><div id=app></div></body></html>",
    ),
    (
        "vue with a spinner",
        "<body><div id=app><div class=spinner></div><p>Loading, please wait …</p></div><script src=/app.js></script></body>",
    ),
    (
        "next.js, rendered by the client",
        "<!DOCTYPE html><html><head><title>Item</title><script src=/_next/static/chunks/main.js defer></script></head><body><div id=__next></div><script id=__NEXT_DATA__ type=application/json>{\"props\":{\"pageProps\":{}},\"page\":\"/item\"}</script></body></html>",
    ),
    (
        "nuxt spa",
        "<!DOCTYPE html><html><head><title>Nuxt</title></head><body><div id=__nuxt></div><script>window.__NUXT__={config:{}}</script><script type=module src=/_nuxt/entry.js></script></body></html>",
    ),
    (
        "nuxt 2 loading screen",
        "<body><div id=__nuxt><style>#nuxt-loading{color:red}</style><div id=nuxt-loading><div>Loading...</div></div></div><script src=/_nuxt/app.js></script></body>",
    ),
    (
        "gatsby, a page of the client only",
        "<body><noscript id=gatsby-noscript>This app works best with JavaScript enabled.</noscript><div id=___gatsby><div id=gatsby-focus-wrapper></div></div><script src=/app-1.js async></script></body>",
    ),
    (
        "angular",
        "<!doctype html><html lang=en><head><base href=/><title>Shop</title></head><body><app-root></app-root><script src=runtime.js type=module></script><script src=main.js type=module></script></body></html>",
    ),
    (
        "angular with a placeholder",
        "<body><app-root><div class=loader>Loading…</div></app-root><script src=main.js type=module></script></body>",
    ),
    (
        "angular.js by an attribute",
        "<html><body><div ng-app=shop ng-cloak><div ng-view></div></div><script src=/lib/angular.min.js></script><script src=/app.js></script></body></html>",
    ),
    (
        "angular.js on the body",
        "<html><body ng-app=shop><div ui-view></div><script src=/app.js></script></body></html>",
    ),
    (
        "ember",
        "<html><head><script src=/assets/vendor.js></script></head><body><script src=/assets/shop.js></script></body></html>",
    ),
    (
        "ember with a root",
        "<body><div id=ember-app></div><script src=/assets/shop.js></script></body>",
    ),
    (
        "sveltekit without a server",
        "<body data-sveltekit-preload-data=hover><div style='display: contents'><script>import('./_app/start.js')</script></div></body>",
    ),
    (
        "svelte",
        "<body><div id=svelte></div><script src=/build/bundle.js></script></body>",
    ),
    (
        "quasar",
        "<body><div id=q-app></div><script type=module src=/assets/index.js></script></body>",
    ),
    (
        "polymer",
        "<body><shop-app unresolved></shop-app><script type=module src=/src/shop-app.js></script></body>",
    ),
    (
        "stencil, ionic",
        "<body><app-root></app-root><script type=module src=/build/app.esm.js></script><script nomodule src=/build/app.js></script></body>",
    ),
    (
        "ionic within ion-app",
        "<body><ion-app><ion-router-outlet></ion-router-outlet></ion-app><script src=/build/main.js></script></body>",
    ),
    (
        "blazor",
        "<body><div id=app><svg class=loading-progress><circle r=40% cx=50% cy=50% /></svg><div class=loading-progress-text></div></div><div id=blazor-error-ui>An unhandled error has occurred. <a href>Reload</a></div><script src=_framework/blazor.webassembly.js></script></body>",
    ),
    (
        "flutter",
        "<html><head><title>flutter</title><script src=flutter.js defer></script></head><body><script>window.addEventListener('load', () => _flutter.loader.load())</script></body></html>",
    ),
    (
        "elm",
        "<body><div id=elm-root></div><script src=/elm.js></script><script>Elm.Main.init({node: document.getElementById('elm-root')})</script></body>",
    ),
    (
        "ext js",
        "<body><div id=ext-viewport></div><script src=/ext/ext-all.js></script></body>",
    ),
    (
        "gwt",
        "<body><iframe src=\"javascript:''\" id=__gwt_historyFrame style='width:0;height:0;border:0'></iframe><div id=content-root></div><script src=shop/shop.nocache.js></script></body>",
    ),
    (
        "backbone",
        "<body><div id=page></div><script src=/js/underscore.js></script><script src=/js/backbone.js></script></body>",
    ),
    (
        "knockout, its template in a script",
        "<body><div id=items data-bind=\"template: 'item'\"></div><script type=text/html id=item><p data-bind='text: name'>Name of an item</p></script><script src=ko.js></script></body>",
    ),
    (
        "mithril",
        "<body><div id=mount></div><script src=bin/app.js></script></body>",
    ),
    (
        "preact with webpack",
        "<body><div id=preact_root></div><script src=/bundle.js></script></body>",
    ),
    (
        "docsify",
        "<body><div id=app>Please wait...</div><script>window.$docsify = {name: 'docs'}</script><script src=//cdn/docsify.min.js></script></body>",
    ),
    (
        "swagger ui",
        "<body><div id=swagger-ui></div><script src=./swagger-ui-bundle.js></script><script src=./swagger-initializer.js></script></body>",
    ),
    (
        "redoc",
        "<body><redoc-app spec-url=/openapi.json></redoc-app><script src=/redoc.standalone.js></script></body>",
    ),
    (
        "grafana",
        "<body class=theme-dark><div class=preloader><div class=preloader__text>Loading Grafana</div></div><div id=reactRoot></div><script>window.grafanaBootData = {user: {}}</script><script src=public/build/app.js></script></body>",
    ),
    (
        "kibana",
        "<body><kbn-csp data='{}'></kbn-csp><kbn-injected-metadata data='{}'></kbn-injected-metadata><div class=kbnWelcomeView id=kbn_loading_message>Loading Elastic</div><script src=/bootstrap.js></script></body>",
    ),
    (
        "mastodon",
        "<body class=app-body><div class=app-holder data-props='{}' id=mastodon></div><noscript>To use the Mastodon web application, please enable JavaScript.</noscript><script src=/packs/application.js></script></body>",
    ),
    (
        "discourse for a browser",
        "<body><section id=main><div id=main-outlet></div></section><script src=/assets/discourse.js></script></body>",
    ),
    (
        "meteor",
        "<html><head><script src=/packages/meteor.js></script><script src=/app/app.js></script></head><body></body></html>",
    ),
    (
        "header and footer from the server",
        "<body><header><a href=/>Shop</a><nav><a href=/new>New</a> <a href=/sale>Sale</a> <a href=/stores>Stores</a></nav></header><main id=app></main><footer>© 2026 Shop Ltd. All rights reserved. <a href=/imprint>Imprint</a> <a href=/privacy>Privacy</a></footer><script src=/app.js></script></body>",
    ),
    (
        "skeleton without text",
        "<body><div id=shop-root><div class=sk><div class=sk-line></div><div class=sk-line></div><div class=sk-img></div></div></div><script src=/app.js></script></body>",
    ),
    (
        "an iframe of a tag manager beside it",
        "<body><noscript><iframe src='https://www.googletagmanager.com/ns.html' height=0 width=0></iframe></noscript><div id=root></div><script src=/main.js></script></body>",
    ),
    (
        "a root of its own name",
        "<body><noscript>Please enable JavaScript</noscript><div id=shopfront></div><script src=/s.js></script></body>",
    ),
    (
        "written by document.write",
        "<html><head><title>x</title></head><body><script src=/page.js></script></body></html>",
    ),
    (
        "state in a script",
        "<body><div id=app></div><script>window.__STATE__ = {\"title\": \"A long text that is no text of the page, and is not counted as such, however long it may be, because scripts are not shown to anybody who reads the page\"}</script><script src=/a.js></script></body>",
    ),
];

const PAGES: &[Case] = &[
    ("plain", "<h1>It works!</h1>"),
    (
        "nginx",
        "<!DOCTYPE html><html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1><p>If you see this page, the nginx web server is successfully installed and working. Further configuration is required.</p></body></html>",
    ),
    (
        "an index of apache",
        "<html><head><title>Index of /</title></head><body><h1>Index of /</h1><ul><li><a href=a.html>a.html</a></li></ul></body></html>",
    ),
    (
        "empty, without scripts",
        "<html><head><title>x</title></head><body><div id=root></div></body></html>",
    ),
    (
        "a refresh",
        "<html><head><meta http-equiv=refresh content='0;url=/home'><script src=/a.js></script></head><body><div id=app></div></body></html>",
    ),
    (
        "short, with analytics",
        "<body><div id=content><h1>Opening hours</h1><p>Monday to Friday, 9 to 5</p></div><script async src=https://www.googletagmanager.com/gtag/js></script><script>window.dataLayer = []</script></body>",
    ),
    (
        "short, with the root of a social network",
        "<body><div id=fb-root></div><div id=text><h1>Ada's bakery</h1><p>Call us: 030 123456</p></div><script src=//connect.facebook.net/sdk.js></script></body>",
    ),
    (
        "wordpress",
        "<body class=home><div id=page><header><h1>Blog</h1></header><main id=main><article><h2>Hello world!</h2><p>Welcome to WordPress. This is your first post. Edit or delete it, then start writing! It has some more words, so that it looks like an article that people have written and others read, line by line, until its end.</p></article></main></div><script src=/wp-includes/js/jquery.js></script></body>",
    ),
    (
        "mediawiki",
        "<body class=mediawiki><div id=content><h1 id=firstHeading>Ada Lovelace</h1><div id=mw-content-text><p>Augusta Ada King, Countess of Lovelace, was an English mathematician and writer, chiefly known for her work on Charles Babbage's proposed mechanical general-purpose computer, the Analytical Engine. She was the first to recognise that the machine had applications beyond pure calculation, and to have published the first algorithm intended to be carried out by such a machine. She is often regarded as the first computer programmer.</p></div></div><script src=/load.php></script></body>",
    ),
    (
        "next.js, rendered by the server",
        "<body><div id=__next><main><h1>Ada Lovelace</h1><p>Price: 12 €</p><p>A book about the first programmer, in hard cover, with 320 pages and many pictures of her machines. It was made by people who know what they do, and it lasts for longer than most of them.</p></main></div><script id=__NEXT_DATA__ type=application/json>{}</script><script src=/_next/main.js></script></body>",
    ),
    (
        "nuxt, rendered by the server",
        "<body><div id=__nuxt><div id=__layout><h1>A lamp</h1><p>It stands on a table and gives light to all who sit around it in the evening, for 49 euros. It was made by people who know what they do, and it lasts for longer than most of them.</p></div></div><script src=/_nuxt/a.js></script></body>",
    ),
    (
        "gatsby, static",
        "<body><div id=___gatsby><div id=gatsby-focus-wrapper><h1>About us</h1><p>We are a small company in a small town, and we make small things for small people. They like them. It was made by people who know what they do, and it lasts for longer than most of them.</p></div></div><script src=/app.js></script></body>",
    ),
    (
        "angular, rendered by the server",
        "<body><app-root ng-version=17><h1>A chair</h1><p>Made of oak, with four legs, a seat and a back. It carries people of up to 150 kilograms. 99 € It was made by people who know what they do, and it lasts for longer than most of them.</p></app-root><script src=main.js type=module></script></body>",
    ),
    (
        "react with data-reactroot",
        "<body><div id=root><div data-reactroot><h1>News</h1><p>Today nothing has happened that would be worth to be told in this place, and tomorrow will be the same. It was made by people who know what they do, and it lasts for longer than most of them.</p></div></div><script src=/main.js></script></body>",
    ),
    (
        "docusaurus",
        "<body><div id=__docusaurus><nav>Docs Blog</nav><main><h1>Introduction</h1><p>Let's discover Docusaurus in less than 5 minutes. Get started by creating a new site, or try it at once.</p></main></div><script src=/assets/js/main.js></script></body>",
    ),
    (
        "astro with islands",
        "<body><h1>Store</h1><p>Things to buy, each with a price and a picture, sorted by what people want most of all.</p><div><astro-island client:load><p>Cart: 0 items. It is empty, so put something in it, and then come back to pay for all of it at once. It was made by people who know what they do, and it lasts for longer than most of them.</p></astro-island></div><script type=module>class I{}</script></body>",
    ),
    (
        "turbolinks",
        "<html><head><script src=/packs/application.js></script></head><body><h1>Orders</h1><table><tr><td>1</td><td>Lamp</td></tr></table></body></html>",
    ),
    (
        "htmx",
        "<body hx-boost=true><h1>Contacts</h1><ul><li>Ada Lovelace</li><li>Grace Hopper</li></ul><div id=more hx-get=/more></div><script src=/htmx.js></script></body>",
    ),
    (
        "a search page",
        "<body><div id=lga></div><form action=/search><input name=q title=Search><input type=submit value='Search'></form><script src=/xjs/_/js/k.js></script></body>",
    ),
    (
        "a login",
        "<body><div id=messages></div><form method=post><input type=hidden name=csrf><input name=user><input type=password name=p></form><script src=/login.js></script></body>",
    ),
    (
        "a picture",
        "<body><div id=frame><img src=/picture.jpg alt=x></div><script src=/stats.js></script></body>",
    ),
    (
        "a film",
        "<body><div id=controls></div><video src=/film.mp4 controls></video><script src=/player.js></script></body>",
    ),
    (
        "frames",
        "<html><head><script src=/menu.js></script></head><frameset cols='20%,80%'><frame src=/menu><frame src=/main></frameset></html>",
    ),
    (
        "a page in an iframe",
        "<body><div id=bar></div><iframe src=/inner></iframe><script src=/resize.js></script></body>",
    ),
    (
        "a map of a table",
        "<body><div id=tools></div><table><tr><td>1</td></tr></table><script src=/t.js></script></body>",
    ),
    (
        "parked",
        "<body><div id=main><h1>example.com</h1><p>This domain is for sale. Enquire within!</p></div><script src=/park.js></script></body>",
    ),
    (
        "maintenance",
        "<body><div id=box>We will be back soon.</div><script>setTimeout(() => location.reload(), 60000)</script></body>",
    ),
    (
        "not found",
        "<body><div id=wrapper><h1>404</h1><p>Page not found</p></div><script src=/ga.js></script></body>",
    ),
    (
        "data in a script that does not run",
        "<body><div id=app></div><script type=application/ld+json>{\"@type\": \"Product\"}</script></body>",
    ),
    (
        "short with icons of its own",
        "<body><h1>Shop</h1><p>Closed today <ion-icon name=sad></ion-icon></p><cookie-banner></cookie-banner><script src=/icons.js></script></body>",
    ),
    (
        "an article with an empty place for comments",
        "<body><article><h1>Rain</h1><p>It has rained for seven days now, and nobody knows when it will end, if it ends at all. The river is higher than it was in all the years before, and the people of the town carry sand to its banks.</p></article><div id=disqus_thread></div><script src=/embed.js></script></body>",
    ),
    (
        "a list with a place for an application",
        "<body><ul><li>Ada Lovelace, mathematician, born in London in 1815, wrote the first program for a machine that was never built</li><li>Grace Hopper, born in New York in 1906, wrote the first compiler and found a moth in a relay of the machine that she worked with</li><li>Emmy Noether, born in Erlangen in 1882, proved theorems by which physicists live to this day</li><li>Maryam Mirzakhani, born in Tehran in 1977, worked on the geometry of surfaces, and was the first woman with a Fields medal It was made by people who know what they do, and it lasts for longer than most of them. It was made by people who know what they do, and it lasts for longer than most of them.</li></ul><div id=chat-root></div><script src=/chat.js></script></body>",
    ),
    (
        "xml-like, old",
        "<HTML><HEAD><TITLE>Old</TITLE><SCRIPT LANGUAGE=JavaScript>function f() {}</SCRIPT></HEAD><BODY BGCOLOR=white><CENTER><FONT SIZE=5>Welcome to my homepage</FONT></CENTER></BODY></HTML>",
    ),
    (
        "a feed reader's page",
        "<rss><channel><title>x</title></channel></rss>",
    ),
    ("nothing", ""),
    ("text alone", "just text"),
    (
        "print view",
        "<body onload='window.print()'><h2>Invoice 4711</h2><p>Sum: 12.00 EUR</p><script>document.title = 'Invoice'</script></body>",
    ),
    (
        "an applet",
        "<body><object data=/viewer.swf></object><script src=/flash.js></script></body>",
    ),
];

fn shell(page: &str) -> Option<webfill_document::Shell> {
    Document::parse_html(page, &Limits::default()).shell()
}

#[test]
fn pages_made_by_scripts_are_distinguished_from_pages_made_by_servers() {
    let mut wrong = Vec::new();
    for (name, page) in SHELLS {
        if shell(page).is_none() {
            wrong.push(format!("{name}: a shell was taken for a page"));
        }
    }
    for (name, page) in PAGES {
        if let Some(found) = shell(page) {
            wrong.push(format!("{name}: a page was taken for a shell: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(SHELLS.len() >= 40 && PAGES.len() >= 35);
}

#[test]
fn the_evidence_names_what_was_seen() {
    let found = shell(SHELLS[0].1).unwrap();
    assert_eq!(
        (found.characters, found.scripts, &*found.root),
        (0, 1, "#root")
    );
}

#[test]
fn a_deep_or_large_page_is_judged_within_bounds() {
    let deep = format!("{}<script></script>", "<div id=a>".repeat(20_000));
    assert_eq!(shell(&deep), None);
}
