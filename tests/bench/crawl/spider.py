"""Scrapy's side of the crawl benchmarks: the same seeds, links and XPaths as webfill's.

Reads task.json in the current folder; writes items.jsonl and stats.json there. What Scrapy can
do without is switched off, so that it is measured at its best.
"""

import json

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.resolver import dnscache

with open("task.json", encoding="utf-8") as file:
    TASK = json.load(file)
with open(TASK["mapping"], encoding="utf-8") as file:
    MAPPING = json.load(file)

# name, XPath, whether all values are wanted
FIELDS = [
    (field["name"], field["processors"][0]["parameters"]["expression"], field.get("multiple", False))
    for field in MAPPING["fields"]
]


class Spider(scrapy.Spider):
    name = "bench"
    start_urls = TASK["seeds"]

    def parse(self, response):
        fields = {}
        for name, expression, multiple in FIELDS:
            found = response.xpath(expression)
            value = found.getall() if multiple else found.get()
            if value:
                fields[name] = value
        yield {"url": response.url, "fields": fields}
        if response.meta.get("depth", 0) < TASK["depth"]:
            for href in response.xpath("//a/@href").getall():
                yield response.follow(href)


for host in TASK["hosts"]:
    dnscache[host] = "127.0.0.1"

process = CrawlerProcess(
    {
        "LOG_LEVEL": "ERROR",
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "FEEDS": {"items.jsonl": {"format": "jsonlines"}},
        "EXTENSIONS": {
            "scrapy.extensions.logstats.LogStats": None,
            "scrapy.extensions.memusage.MemoryUsage": None,
        },
        **TASK["settings"],
    }
)
crawler = process.create_crawler(Spider)
process.crawl(crawler)
process.start()
with open("stats.json", "w", encoding="utf-8") as file:
    json.dump(crawler.stats.get_stats(), file, default=str)
