<?php
// php pay_streams.php SOCKET ORDER AMOUNT: opens an invoice, shows the requisites, waits for the money. Ends with 0 when it
// is paid. Needs no extension.
[, $socket, $order, $amount] = $argv;

// One call: its status and its document. A 429 or 503 is retried after its Retry-After.
function call(string $method, string $path, ?array $body = null): array
{
    global $socket;
    $text = $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR);
    for ($try = 1; ; $try++) {
        $stream = @stream_socket_client("unix://$socket", $number, $why, 5);
        if ($stream === false) {
            throw new RuntimeException("tilld does not answer at $socket: $why");
        }
        stream_set_timeout($stream, 90);
        fwrite($stream, "$method $path HTTP/1.1\r\nHost: tilld\r\nConnection: close\r\nPrefer: wait=20\r\n"
            . "Content-Type: application/json\r\nContent-Length: " . strlen($text) . "\r\n\r\n$text");
        $answer = (string) stream_get_contents($stream);
        fclose($stream);
        [$head, $document] = explode("\r\n\r\n", $answer, 2) + ['', ''];
        preg_match('#^HTTP/1\.1 (\d{3})#', $head, $found);
        preg_match('#^content-length: *(\d+)#mi', $head, $length);
        if (!$found || strlen($document) < (int) ($length[1] ?? 0)) {
            throw new RuntimeException("tilld's answer at $socket broke off");
        }
        $status = (int) $found[1];
        if ($try === 5 || !in_array($status, [429, 503], true)) {
            return [$status, json_decode($document, true) ?? ['detail' => $document]];
        }
        sleep(preg_match('#^retry-after: *(\d+)#mi', $head, $after) ? (int) $after[1] : 1);
    }
}

// A problem document says what is wrong and what to do.
function refused(int $status, array $problem): void
{
    fwrite(STDERR, "$status " . ($problem['error'] ?? '-') . ": $problem[detail]; " . ($problem['hint'] ?? '') . "\n");
    exit(1);
}

try {
    $wish = ['order_id' => $order, 'amount' => $amount, 'currency' => 'RUB', 'method' => 'SBP'];
    [$status, $invoice] = call('POST', '/v1/invoices', $wish);
} catch (RuntimeException $error) {
    fwrite(STDERR, $error->getMessage() . "\n");
    exit(1);
}
if ($status === 202) {
    echo "not known yet whether the service opened it: show nothing, a notification may settle it\n";
} elseif ($status < 300) {
    $requisites = json_encode($invoice['requisites'], JSON_UNESCAPED_UNICODE);
    echo "pay $invoice[amount_agreed] $invoice[currency] to $requisites until $invoice[expire_at]\n";
} elseif ($status === 409 && ($invoice['invoice']['outcome'] ?? '') === 'paid') {
    echo "order $order: paid\n"; // The customer came back after paying.
    exit(0);
} else {
    refused($status, $invoice);
}

// 202 is "not yet", and nothing answers while tilld restarts: retry, for a quarter of an hour.
$until = time() + 900;
while (time() < $until) {
    try {
        [$status, $invoice] = call('GET', '/v1/orders/' . rawurlencode($order) . '/wait?timeout=60');
    } catch (RuntimeException $error) {
        sleep(2);
        continue;
    }
    if ($status === 200) {
        echo "order $order: $invoice[outcome]\n";
        exit($invoice['outcome'] === 'paid' ? 0 : 1);
    }
    if ($status !== 202) {
        refused($status, $invoice);
    }
    sleep(1);
}
fwrite(STDERR, "order $order: still open\n");
exit(1);
