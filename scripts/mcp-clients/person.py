#!/usr/bin/env python3
"""A person with a browser, for programs that ask for access: opens the start link, and allows what apps ask for.

usage: person.py COOKIES start LINK      creates the first account; the cookies stay in the file COOKIES
       person.py COOKIES allow URL       allows an app; prints where the browser was sent, and opens it if it is on this machine
       person.py COOKIES open URL        the same for programs that begin to listen after they have opened the browser
"""

import http.cookiejar
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

EMAIL = "marta@example.com"
PASSWORD = "correct horse battery"


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Person:
    def __init__(self, file):
        self.cookies = http.cookiejar.LWPCookieJar(file)
        try:
            self.cookies.load(ignore_discard=True)
        except FileNotFoundError:
            pass
        self.opener = urllib.request.build_opener(Stay, urllib.request.HTTPCookieProcessor(self.cookies))

    def ask(self, url, form=None):
        """Returns the status, the redirect address and the text. A form is sent as the browser sends it: with its origin."""
        headers = {"Accept": "text/html"}
        if form is not None:
            headers["Origin"] = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(url))
            form = urllib.parse.urlencode(form).encode()
        try:
            answer = self.opener.open(urllib.request.Request(url, form, headers))
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode()
        self.cookies.save(ignore_discard=True)
        return answer.status, answer.headers.get("Location"), text

    def submit(self, url, **fields):
        """Opens a page and submits its form, with the fields that are hidden in it or chosen by default."""
        status, target, page = self.ask(url)
        if status == 303:
            # The sign-in is older than ten minutes.
            self.submit(urllib.parse.urljoin(url, target), email=EMAIL, password=PASSWORD)
            status, _, page = self.ask(url)
        if status != 200:
            sys.exit(f"{url}: {status}\n{page}")
        tags = re.findall(r"<input[^>]*>", page)
        given = {tag: dict(re.findall(r'([\w-]+)="([^"]*)"', tag)) for tag in tags}
        hidden = {one["name"]: one.get("value", "") for tag, one in given.items() if one.get("type") == "hidden" or " checked" in tag}
        return self.ask(url, {**hidden, **fields})


def main():
    file, action, url = sys.argv[1:]
    person = Person(file)
    if action == "start":
        status, _, page = person.submit(url, name="Marta Ruiz", email=EMAIL, password=PASSWORD)
        if status != 303:
            sys.exit(f"the account was not created: {status}\n{page}")
        return
    status, target, page = person.submit(url, decision="allow")
    if status != 303:
        sys.exit(f"the app was not allowed: {status}\n{page}")
    print(target, flush=True)
    if re.match(r"http://(127\.0\.0\.1|localhost)[:/]", target):
        # Where nobody listens, the program reads what is printed.
        follow(target, attempts=120 if action == "open" else 1)


def follow(target, attempts):
    """Goes where the browser is sent."""
    for attempt in range(attempts):
        try:
            urllib.request.urlopen(target).read()
            return
        except urllib.error.URLError:
            if attempt + 1 < attempts:
                time.sleep(0.5)


main()
